import Foundation
import KeyValueModel
import Store
import Support
import TestKit
import Testing

@testable import Cluster
@testable import KeywayServer

/// A server and clients that claim to be nodes.
@Suite("Requests from nodes", .timeLimit(.minutes(60))) struct NodeServiceTests {
  private static let targets = [
    "/v1/nodes", "/v1/nodes/snapshot", "/v1/nodes/records?epoch=e&after=0&digest=0&node=http%3A%2F%2Fx",
    "/v1/nodes/revocations", "/v1/nodes/streams", "/v1/nodes/writes", "/v1/nodes/streams/x",
  ]

  @Test("On a server that may not be followed, all of /v1/nodes is 404, whoever asks")
  func alone() throws {
    let guarded = try GuardedServer()
    for (client, headers) in [(try TestServer().client, [:]), (guarded.client, guarded.admin)] {
      for target in Self.targets {
        for method in ["GET", "POST", "OPTIONS"] {
          let response = try client.send(method, target, headers)
          #expect(response.status == 404 && response.problem == "not-found", "\(method) \(target)")
        }
      }
      #expect(try client.must("GET", "/v1/status", headers).json["role"].text == "single")
      let paths = try client.must("GET", "/v1/openapi.json", headers).json["paths"].names
      #expect(!paths.contains { $0.hasPrefix("/v1/nodes") })
    }
  }

  /// Introduces a node at a URL to a server, and returns a stream's name that could be that node's.
  private static func introduce(_ url: String, to server: TestServer) throws -> String {
    let name = url.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
    let digest = String(JournalDigest.start.value, radix: 16)
    try server.client.must("GET", "/v1/nodes/records?epoch=\(server.epoch)&after=0&digest=\(digest)&node=\(name)")
    return "\(NodeMark(of: url).text)1-0123456789abcdef0123456789abcdef"
  }

  @Test("To an address that is not listed nothing is sent, though a node gives it as its own and follows")
  func unlisted() throws {
    let stranger = try ScriptedNode { _, _ in ScriptedNode.answer(200, Array("{}".utf8)) }
    let url = try stranger.client().address.description
    let server = try TestServer { $0.cluster.followers = true }
    let stream = try Self.introduce(url, to: server)
    #expect(try server.client.json("/v1/status")["role"].text == "leader")
    #expect(try server.client.json("/v1/nodes")["nodes"].items.count == 1)
    for method in ["GET", "DELETE"] {
      #expect(try server.client.send(method, "/v1/streams/\(stream)").problem == "unknown-stream")
    }
    let lease = ["Keyway-Lifetime": "stream=\(stream)"]
    #expect(try server.client.send("PUT", "/v1/objects/Note/9", lease, body: "{}").problem == "invalid-value")
    #expect(stranger.connections.withLock { $0 } == 0)
  }

  /// The response of a node, and the response that a client gets for it.
  struct Exchange: Sendable, CustomTestStringConvertible {
    let head: String
    var body = ""
    let status: Int
    var testDescription: String { head }
  }

  @Test(
    "Of a listed node's answer only what a node answers is passed back, and of a request only what it needs goes there",
    arguments: [
      Exchange(
        head: "200 OK\r\nContent-Type: application/json\r\nSet-Cookie: a=b\r\nX-Other: c\r\nETag: \"e-1\"", body: "{}",
        status: 200),
      Exchange(head: "404 X\r\nContent-Type: application/problem+json\r\nSet-Cookie: a=b", body: "{}", status: 404),
      Exchange(head: "204 X\r\nSet-Cookie: a=b", status: 204),
      Exchange(head: "200 OK\r\nContent-Type: text/html", body: "<script>", status: 502),
      Exchange(head: "200 OK", body: "<script>", status: 502),
      Exchange(head: "404 X\r\nContent-Type: application/json+html", body: "<script>", status: 502),
      Exchange(head: "301 X\r\nLocation: http://example.org/", status: 502),
      Exchange(head: "201 X\r\nLocation: //example.org/", status: 502),
      Exchange(head: "299 X", status: 502),
    ])
  func passing(exchange: Exchange) throws {
    let node = try ScriptedNode { _, _ in
      Array("HTTP/1.1 \(exchange.head)\r\nContent-Length: \(exchange.body.utf8.count)\r\n\r\n\(exchange.body)".utf8)
    }
    let url = try node.client().address.description
    let server = try TestServer {
      $0.cluster.followers = true
      $0.cluster.urls = [url.uppercased() + "/"]
    }
    let stream = try Self.introduce(url, to: server)
    let headers = ["Cookie": "keyway_session=a.b; other=c", "Authorization": "Bearer x", "X-Other": "d"]
    let response = try server.client.send("GET", "/v1/streams/\(stream)", headers)
    #expect(response.status == exchange.status, "\(response.text)")
    #expect(response["Set-Cookie"] == nil && response["X-Other"] == nil && response["Location"] == nil)
    #expect(!response.text.contains("<script>"))
    if exchange.status == 502 { #expect(response.problem == "bad-gateway" && response.text.contains(url)) }
    if exchange.status == 200 { #expect(response["ETag"] == "\"e-1\"" && response.text == "{}") }
    let head = try #require(node.requests.withLock { $0.first?.head }).lowercased()
    for name in ["cookie", "authorization", "x-other"] { #expect(!head.contains("\r\n\(name):"), "\(name)") }
  }
}
