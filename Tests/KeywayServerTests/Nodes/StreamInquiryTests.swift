import Foundation
import KeyValueModel
import Store
import TestKit
import Testing

@testable import Cluster
@testable import KeywayServer

/// The queries and replies of nodes about streams that objects of other nodes last with.
@Suite("Streams that objects of other nodes last with") struct StreamInquiryTests {
  private static let hash = "-0123456789abcdef0123456789abcdef"

  /// Introduces a node to a server, as if it followed it.
  private static func introduce(_ url: String, to server: TestServer) throws {
    let name = url.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
    let digest = String(JournalDigest.start.value, radix: 16)
    try server.client.must("GET", "/v1/nodes/records?epoch=\(server.epoch)&after=0&digest=\(digest)&node=\(name)")
  }

  @Test("The number of a stream is told those whose stream it is, also while it is cut")
  func number() throws {
    let guarded = try GuardedServer { $0.cluster.followers = true }
    let (ann, bob) = (guarded.bearer("ann", roles: ["reader"]), guarded.bearer("bob", roles: ["reader"]))
    let stream = try guarded.client.stream("/v1/streams", ann)
    let name = try #require(try stream.next().json["stream"].text)
    let target = "/v1/nodes/streams/\(name)"
    #expect(try guarded.client.send("GET", target, ann).json["number"].whole ?? 0 > 0)
    #expect(try guarded.client.send("GET", target, guarded.admin).status == 200)
    #expect(try guarded.client.send("GET", target, bob).problem == "unknown-stream")
    #expect(try guarded.client.send("GET", target).problem == "unauthenticated")
    #expect(try guarded.client.send("GET", target + "0", ann).problem == "unknown-stream")
    #expect(try guarded.client.send("GET", target + "?x=1", ann).problem == "malformed-query")
    stream.socket.close()
    #expect(Deadline().awaits { (try? guarded.client.send("GET", "/v1/streams/\(name)", ann))?.status == 404 })
    #expect(try guarded.client.send("GET", target, ann).status == 200)
    try guarded.client.must("DELETE", "/v1/streams/\(name)", ann)
    #expect(try guarded.client.send("GET", target, ann).problem == "unknown-stream")
    let body = #"{"ended":[5]}"#
    let json = ["Content-Type": "application/json"]
    #expect(
      try guarded.client.send("POST", "/v1/nodes/streams", ann.merging(json) { $1 }, body: body).problem == "forbidden")
  }

  @Test("Of streams that are gone a node takes numbers, not more than a thousand")
  func ending() throws {
    let server = try TestServer { $0.cluster.followers = true }
    let many = "[\((1...1_001).map { "\($0)" }.joined(separator: ","))]"
    for body in [
      "{}", #"{"ended":5}"#, #"{"ended":[0]}"#, #"{"ended":["5"]}"#, #"{"ended":[-5]}"#, #"{"ended":[],"x":1}"#,
      "{\"ended\":\(many)}",
    ] {
      #expect(try server.client.send("POST", "/v1/nodes/streams", body: body).problem == "invalid-value", "\(body)")
    }
    #expect(try server.client.send("POST", "/v1/nodes/streams", body: "{").problem == "malformed-json")
    #expect(try server.client.must("POST", "/v1/nodes/streams", body: #"{"ended":[5,5,6]}"#).json["ended"].whole == 0)
    // A node has no say in the streams of this one.
    let stream = try server.client.stream("/v1/streams")
    let name = try #require(try stream.next().json["stream"].text)
    let number = try #require(try server.client.json("/v1/nodes/streams/\(name)")["number"].whole)
    try server.client.must("PUT", "/v1/objects/Note/9", ["Keyway-Lifetime": "stream=\(name)"], body: "{}")
    let told = try server.client.must("POST", "/v1/nodes/streams", body: "{\"ended\":[\(number)]}")
    #expect(told.json["ended"].whole == 0)
    try server.client.must("DELETE", "/v1/streams/\(name)")
    #expect(Deadline().awaits { (try? server.client.send("GET", "/v1/objects/Note/9"))?.status == 404 })
  }

  @Test("A write names no more than a hundred streams of other nodes, and waits no longer than nodes.waitSeconds")
  func bounds() throws {
    // A node that accepts connections and sends nothing.
    let silent = try LoopbackListener()
    let url = "http://127.0.0.1:\(silent.port)"
    let server = try TestServer {
      $0.waits.seconds = 1
      $0.cluster.followers = true
      $0.cluster.urls = [url]
    }
    let operations = (0...100).map { index in
      #"{"op":"create","object":"Note/m\#(index)","value":{},"lifetime":"stream=zzzzzz\#(index)\#(Self.hash)"}"#
    }
    let body = "{\"operations\":[\(operations.joined(separator: ","))]}"
    // JSON can escape any letter.
    for body in [body, body.replacing("stream=", with: "\\u0073tream="), body.replacing("=", with: "\\u003d")] {
      let refused = try server.client.send("POST", "/v1/transactions", body: body)
      #expect(refused.problem == "invalid-value" && refused.text.contains("the maximum is 100"), "\(refused.text)")
    }
    let name = "\(NodeMark(of: url).text)1\(Self.hash)"
    func put() throws -> WireResponse {
      try server.client.send("PUT", "/v1/objects/Note/9", ["Keyway-Lifetime": "stream=\(name)"], body: "{}")
    }
    #expect(try put().problem == "invalid-value")
    try Self.introduce(url, to: server)
    #expect(Deadline().awaits { (try? put())?.problem == "overloaded" })
    #expect(try server.client.send("GET", "/v1/objects/Note/9").status == 404)
  }
}

@Suite("The silence of nodes") struct PeerLivenessTests {
  @Test("A node is gone after so long without a sign; one that is heard begins anew, and who slept knows of no silence")
  func silence() {
    var liveness = PeerLiveness()
    func gone(_ nodes: Set<UInt64>, _ present: Set<UInt64> = [], at now: UInt64) -> Set<UInt64> {
      liveness.gone(among: nodes, present: present, at: now, after: 2_000)
    }
    #expect(gone([1, 2], [2], at: 10_000) == [])
    #expect(gone([1, 2], [2], at: 11_000) == [])
    #expect(gone([1, 2], at: 12_000) == [1])
    #expect(gone([1, 2], [1], at: 13_000) == [])
    #expect(gone([1, 2], at: 13_999) == [])
    #expect(gone([1, 2], at: 14_000) == [2])
    // While this node was suspended, it missed messages that others may have sent.
    let woken = 14_001 + PeerLiveness.pause
    #expect(gone([1, 2], at: woken) == [])
    #expect(gone([1, 2], at: woken + 2_000) == [1, 2])
    // Nothing is remembered of nodes that are not asked about.
    #expect(gone([2], at: woken + 2_001) == [2])
    #expect(gone([1], at: woken + 2_002) == [])
  }

  @Test("Without a grace a node is gone that is not there now")
  func none() {
    var liveness = PeerLiveness()
    #expect(liveness.gone(among: [1, 2], present: [1, 3], at: 5, after: 0) == [2])
  }
}
