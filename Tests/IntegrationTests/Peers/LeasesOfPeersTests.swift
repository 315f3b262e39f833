import Foundation
import KeyValueModel
import TestKit
import Testing

/// Objects that last with streams of peers, and of nodes that follow one.
@Suite("Leases of streams of peers", .timeLimit(.minutes(60))) struct LeasesOfPeersTests {
  private static func open(_ client: WireClient) throws -> (stream: WireStream, lease: [String: String]) {
    let stream = try client.stream("/v1/streams")
    let name = try #require(try stream.next().json["stream"].text)
    return (stream, ["Keyway-Lifetime": "stream=\(name)"])
  }

  private static func isGone(_ object: String, at clients: [WireClient]) -> Bool {
    clients.allSatisfy { client in
      Deadline().awaits { (try? client.send("GET", "/v1/objects/\(object)"))?.status == 404 }
    }
  }

  @Test("Objects that last with streams of a lost peer end, and no others; those of several peers end together")
  func dead() throws {
    let group = try PeerGroup(
      3,
      settings: ["streams.resumeSeconds": "2", "nodes.followers": "true", "nodes.urls": NodePorts.urls])
    let directory = try ScratchDirectory()
    // Only the peer that it follows knows it.
    let follower = try NodeProcess(
      "f", in: directory, following: group.peers[2].url, settings: ["streams.resumeSeconds": "2"])
    #expect(follower.awaitReady())
    let clients = [group[0], group[1], group[2], follower.client]
    let bonds = try clients.map(Self.open)
    for (maker, bond) in bonds.enumerated() {
      for (writer, client) in clients.enumerated() {
        let object = "/v1/objects/Note/\(maker)-\(writer)"
        #expect(Deadline().awaits { (try? client.send("PUT", object, bond.lease, body: "{}"))?.isSuccess == true })
      }
    }
    // Streams of several nodes in one transaction, which is done once.
    let operations = bonds.enumerated().map { maker, bond in
      let lifetime = bond.lease["Keyway-Lifetime"] ?? ""
      return #"{"op":"create","object":"Note/all-\#(maker)","value":{},"lifetime":"\#(lifetime)"}"#
    }
    try group[1].must("POST", "/v1/transactions", body: "{\"operations\":[\(operations.joined(separator: ","))]}")
    try group.kill(0)
    let rest = Array(clients.dropFirst())
    for object in (0..<4).map({ "Note/0-\($0)" }) + ["Note/all-0"] {
      #expect(Self.isGone(object, at: rest), "\(object)")
    }
    for maker in 1..<4 {
      for writer in 0..<4 {
        #expect(try rest[0].send("GET", "/v1/objects/Note/\(maker)-\(writer)").status == 200, "\(maker) \(writer)")
      }
    }
    bonds[3].stream.socket.close()
    for object in (0..<4).map({ "Note/3-\($0)" }) + ["Note/all-3"] {
      #expect(Self.isGone(object, at: rest), "\(object)")
    }
    for maker in 1..<3 { #expect(try rest[0].send("GET", "/v1/objects/Note/all-\(maker)").status == 200) }
  }
}
