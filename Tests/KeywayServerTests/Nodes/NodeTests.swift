import Cluster
import Foundation
import HTTPServer
import KeyValueModel
import KeywayServer
import Store
import TestKit
import Testing

@Suite("The state that an answer is of") struct NodeTests {
  private func cursor(_ response: WireResponse) -> String { response["Keyway-Cursor"] ?? "" }

  /// Sends a request whose response is read later.
  private static func begin(_ request: WireRequest, at server: TestServer) throws -> WireReader {
    let socket = try WireSocket(port: server.server.port)
    try socket.send(request.text(host: "localhost"))
    return WireReader(socket)
  }

  private static func waitingCount(_ server: TestServer) -> Int? {
    let text = (try? server.client.send("GET", "/metrics"))?.text ?? ""
    return text.split(separator: "\n").first { $0.hasPrefix("keyway_requests_behind ") }?.split(separator: " ").last
      .flatMap { Double($0) }.map { Int($0) }
  }

  @Test("Every answer, problems included, names the state that it was judged by")
  func everyAnswer() throws {
    let server = try TestServer()
    let client = server.client
    let epoch = server.server.store.epoch
    func present() -> String { "\(epoch)-\(server.server.store.snapshot.revision)" }
    let requests: [(method: String, target: String, body: String?, status: Int)] = [
      ("GET", "/v1/objects/Account/1", nil, 200), ("GET", "/v1/objects/Account/99", nil, 404),
      ("GET", "/v1/objects/Account/99/balance", nil, 404), ("GET", "/v1/objects/Nothing", nil, 404),
      ("GET", "/v1/objects/Account?filter=(", nil, 400), ("GET", "/v1/objects/Account", nil, 200),
      ("PUT", "/v1/objects/Account/99/balance", "1", 404), ("PUT", "/v1/objects/Account/1/balance", "\"x\"", 422),
      ("PUT", "/v1/objects/Account/1/balance", "{", 400), ("DELETE", "/v1/objects/Account/99", nil, 404),
      ("POST", "/v1/transactions", #"{"operations":[{"op":"delete","object":"Account/99"}]}"#, 404),
      ("GET", "/healthz", nil, 200), ("GET", "/v1/status", nil, 200), ("GET", "/v1/entities", nil, 200),
      ("GET", "/nothing", nil, 404), ("TRACE", "/v1/objects/Account/1", nil, 405),
      ("GET", "/v1/streams/x-1/cells/a", nil, 404),
    ]
    for request in requests {
      let response = try client.send(request.method, request.target, body: request.body)
      #expect(response.status == request.status, "\(request.method) \(request.target)")
      #expect(cursor(response) == present(), "\(request.method) \(request.target)")
    }
    let stale = try client.send("PUT", "/v1/objects/Account/1/balance", ["If-Match": "\"\(epoch)-0\""], body: "5")
    #expect(stale.status == 412 && cursor(stale) == present())
    let written = try client.send("PUT", "/v1/objects/Account/1/balance", body: "5")
    #expect(written.status == 200 && cursor(written) == present())
    let stream = try client.stream("/v1/objects/Account/1/balance")
    #expect(stream.head["Keyway-Cursor"] == present())
  }

  @Test("A request that names a state to come is answered by it, and reads its body once")
  func waiting() throws {
    let server = try TestServer { $0.waits.seconds = 60 }
    let epoch = server.server.store.epoch
    let next = server.server.store.snapshot.revision + 1
    let headers = ["Keyway-Cursor": "\(epoch)-\(next)"]
    let waiting = try [
      WireRequest("GET", "/v1/objects/Account/1/balance", headers),
      WireRequest("PUT", "/v1/objects/Note/7", headers, body: #"{"text":"late"}"#),
      WireRequest("GET", "/v1/objects/Account/1", headers),
    ].map { try Self.begin($0, at: server) }
    // None of them is answered before the state is available.
    #expect(Deadline().awaits { Self.waitingCount(server) == waiting.count })
    try server.client.must("PUT", "/v1/objects/Account/1/balance", body: "4711")
    let responses = try waiting.map { try $0.response(hasBody: true, before: Deadline()) }
    #expect(responses[0].status == 200 && responses[0].text == "4711\n")
    #expect(responses[1].status == 201 && responses[1].json["text"].text == "late")
    #expect(responses[2].json["balance"].whole == 4711)
  }

  @Test("A state that does not come is 503 behind; what is malformed, of another epoch or past is no state to wait for")
  func behind() throws {
    let server = try TestServer { $0.waits.seconds = 0 }
    let epoch = server.server.store.epoch
    let revision = server.server.store.snapshot.revision
    let target = "/v1/objects/Account/1"
    for (method, body) in [("GET", nil), ("PUT", "{}")] {
      let future = try server.client.send(method, target, ["Keyway-Cursor": "\(epoch)-\(revision + 9)"], body: body)
      #expect(future.status == 503 && future.problem == "behind" && future["Retry-After"] != nil)
      #expect(cursor(future) == "\(epoch)-\(revision)")
    }
    let stream = try server.client.send(
      "GET", target, ["Keyway-Cursor": "\(epoch)-\(revision + 9)", "Accept": "text/event-stream"])
    #expect(stream.problem == "behind")
    for word in ["x", "\(epoch)", "other-99", "\(epoch)-\(revision)", "\(epoch)-1", "\(epoch)-09999", ""] {
      #expect(try server.client.send("GET", target, ["Keyway-Cursor": word]).status == 200, "\(word)")
    }
    // Requests of operators never wait.
    #expect(try server.client.send("GET", "/healthz", ["Keyway-Cursor": "\(epoch)-\(revision + 9)"]).status == 200)
  }

  @Test("So many requests may wait, and so many of a client; the others are behind at once")
  func bounds() throws {
    let server = try TestServer {
      $0.waits.seconds = 60
      $0.waits.requestsPerClient = 2
    }
    let revision = server.server.store.snapshot.revision
    let headers = ["Keyway-Cursor": "\(server.server.store.epoch)-\(revision + 1)"]
    let waiting = try (0..<2).map { _ in
      try Self.begin(WireRequest("GET", "/v1/objects/Account/1", headers), at: server)
    }
    #expect(Deadline().awaits { Self.waitingCount(server) == 2 })
    #expect(try server.client.send("GET", "/v1/objects/Account/1", headers).problem == "behind")
    try server.client.must("PUT", "/v1/objects/Account/1/balance", body: "1")
    for answer in waiting { #expect(try answer.response(hasBody: true, before: Deadline()).status == 200) }
    #expect(Self.waitingCount(server) == 0)
  }

  @Test("The status says which node it is")
  func status() throws {
    let server = try TestServer()
    let status = try server.client.json("/v1/status")
    #expect(status["role"].text == "single" && status["behind"].whole == 0 && status["behindSeconds"].whole == 0)
    #expect(status["node"].text == "http://127.0.0.1:\(server.server.port)")
    let named = try TestServer { $0.cluster.url = "https://a.example.org" }
    #expect(try named.client.json("/v1/status")["node"].text == "https://a.example.org")
  }

  @Test("A server that has ended, and its store, are let go")
  func end() throws {
    weak var store: Store?
    do {
      let server = try TestServer()
      try server.client.must("PUT", "/v1/objects/Account/1/balance", body: "1")
      store = server.server.store
    }
    #expect(Deadline().awaits { store == nil })
  }
}
