import Foundation
import KeyValueModel
import TestKit
import Testing

/// Streams with cells and pages of one node, at the others.
@Suite("Names at other nodes", .timeLimit(.minutes(60))) struct NamesOfNodesTests {
  private static let cells = #"{"cells":{"one":{"object":"Account/1","keyPaths":["balance"],"options":["old","new"]}}}"#

  private static func open(_ client: WireClient) throws -> (stream: WireStream, url: String) {
    let stream = try client.stream("/v1/streams", ["Content-Type": "application/json"], method: "POST", body: cells)
    return (stream, try #require(try stream.next().json["url"].text))
  }

  /// Waits until a name of each node is valid at each other one.
  private static func awaitKnown(_ clients: [WireClient]) throws {
    for maker in clients {
      let (stream, url) = try open(maker)
      for other in clients { #expect(Deadline().awaits { (try? other.send("GET", url))?.status == 200 }) }
      stream.socket.close()
    }
  }

  /// Checks that every node serves the streams and pages of the others.
  private static func check(_ clients: [WireClient]) throws {
    try awaitKnown(clients)
    for (index, maker) in clients.enumerated() {
      let (stream, url) = try open(maker)
      // An unbroken stream of the same cell, to compare with.
      let (unbroken, _) = try open(maker)
      var told: [String] = []
      func read(_ stream: WireStream, upTo id: String) throws {
        told += try stream.events { $0.id == id }.map(\.withoutRetry.text)
      }
      for (step, other) in (clients + clients).enumerated() {
        let body = #"{"object":"Account/1","keyPaths":["owner.lastName"],"visible":\#(step % 2 == 0)}"#
        try other.must("PUT", "\(url)/cells/more", body: body)
        #expect(try clients[(step + 1) % 3].send("GET", "\(url)/cells/more").json["visible"] == .bool(step % 2 == 0))
        try other.must("DELETE", "\(url)/cells/more")
      }
      var cursor = try #require(maker.send("GET", url)["Keyway-Cursor"])
      stream.socket.close()
      for (step, other) in (clients + clients).enumerated() {
        // The connection is lost, events come meanwhile, and the stream is resumed at another node.
        try other.must("PUT", "/v1/objects/Account/1/balance", body: "\(10_000 * index + 100 * step + 1)")
        let again = try other.stream(url, ["Last-Event-ID": cursor])
        #expect(try again.next().name == "open")
        let last = try clients[step % 3].must(
          "PUT", "/v1/objects/Account/1/balance", body: "\(10_000 * index + 100 * step + 2)")
        cursor = try #require(last["Keyway-Cursor"])
        try read(again, upTo: cursor)
        again.socket.close()
      }
      let expected = try unbroken.events { $0.id == cursor }.map(\.withoutRetry.text)
      #expect(told == expected && told.count == 12)
      let first = try maker.json("/v1/objects?limit=4")
      var references = first["objects"].items.count
      var next = first["next"].text
      var step = index
      while let page = next {
        step += 1
        let response = try clients[step % 3].send("GET", "/v1/objects?limit=4&page=\(page)")
        #expect(response.status == 200 && response.json["revision"] == first["revision"])
        references += response.json["objects"].items.count
        next = response.json["next"].text
      }
      #expect(references == first["total"].whole && step > index + 3)
    }
  }

  @Test("A leader, its follower and its follower serve one another's streams and pages; those of a dead one are gone")
  func followers() throws {
    let directory = try ScratchDirectory()
    let leader = try NodeProcess("a", in: directory)
    let near = try NodeProcess("b", in: directory, following: leader.url)
    let far = try NodeProcess("c", in: directory, following: near.url)
    for node in [near, far] { #expect(node.awaitReady()) }
    try Self.check([leader, near, far].map(\.client))
    let (stream, url) = try Self.open(far.client)
    let page = try #require(far.client.json("/v1/objects?limit=2")["next"].text)
    try far.kill()
    _ = stream
    for node in [leader, near] {
      #expect(try node.client.send("GET", "\(url)/cells").problem == "unknown-stream")
      #expect(try node.client.send("GET", "/v1/objects?limit=2&page=\(page)").problem == "page-expired")
      #expect(try node.client.send("GET", url, ["Accept": "text/event-stream"]).status == 404)
    }
    try far.start()
    #expect(far.awaitReady())
    for node in [leader, near, far] { #expect(try node.client.send("GET", url).status == 404) }
    for node in [far, near, leader] { try node.stop() }
  }

  @Test("Two followers of one leader learn of each other by it, and peers by their database")
  func siblings() throws {
    let directory = try ScratchDirectory()
    let leader = try NodeProcess("a", in: directory)
    let followers = try ["b", "c"].map { try NodeProcess($0, in: directory, following: leader.url) }
    for node in followers { #expect(node.awaitReady()) }
    try Self.check((followers + [leader]).map(\.client))
    let peers = try PeerGroup(3)
    try Self.check(peers.peers.map(\.client))
    let (stream, url) = try Self.open(peers[0])
    let name = try #require(url.split(separator: "/").last)
    let lease = ["Keyway-Lifetime": "stream=\(name)"]
    // An object that lasts with a stream can be written at any peer, and ends with the stream.
    for index in 0..<3 {
      let made = try peers[index].send("PUT", "/v1/objects/Note/lasting\(index)", lease, body: #"{"text":"with it"}"#)
      #expect(made.status == 201)
    }
    let once = lease.merging(["Idempotency-Key": "one"]) { $1 }
    let created = try (0..<3).map { try peers[$0].send("POST", "/v1/objects/Note", once, body: #"{"text":"one"}"#) }
    #expect(created.allSatisfy { $0.status == 201 && $0["Location"] == created[0]["Location"] })
    // So can one in a transaction; a value that is only text does not name a stream.
    func transaction(_ index: Int, _ name: Substring) throws -> WireResponse {
      let value = #"{"text":"stream=\#(name)"}"#
      let operation =
        #"{"op":"create","object":"Note/inside\#(index)","value":\#(value),"lifetime":"stream=\#(name)"}"#
      let plain = #"{"op":"set","object":"Account/1","keyPath":"balance","value":\#(index)}"#
      return try peers[index].send("POST", "/v1/transactions", body: "{\"operations\":[\(plain),\(operation)]}")
    }
    for index in 0..<3 {
      let made = try transaction(index, name)
      #expect(made.status == 200, "\(made.text)")
      let strange = try transaction(index, "\(name)x")
      #expect(strange.problem == "invalid-value" && strange.json["operation"].whole == 1, "\(strange.text)")
    }
    try peers[1].must("DELETE", url)
    _ = stream
    for index in 0..<3 {
      let targets = [
        "/v1/objects/Note/lasting\(index)", "/v1/objects/Note/inside\(index)", created[0]["Location"] ?? "",
      ]
      for target in targets { #expect(Deadline().awaits { (try? peers[index].send("GET", target))?.status == 404 }) }
      #expect(try peers[index].send("PUT", "/v1/objects/Note/9", lease, body: "{}").problem == "invalid-value")
    }
    try peers.replace(0)
    for index in 0..<3 {
      #expect(try peers[index].send("PUT", "/v1/objects/Note/9", lease, body: "{}").problem == "invalid-value")
      #expect(try peers[index].send("GET", url).problem == "unknown-stream")
    }
  }
}
