import Foundation
import KeyValueModel
import KeywayServer
import Store
import Support
import TestKit
import Testing

@Suite("Idempotency-Key")
struct IdempotencyTests {
  private static let notes = "/v1/objects/Note"
  private static let transactions = "/v1/transactions"
  private static let visit = #"{"operations":[{"op":"set","object":"Account/1","keyPath":"visits","value":1}]}"#

  private let server: TestServer

  init() throws { server = try TestServer() }

  /// Sends a POST with a key.
  private func post(
    _ key: String, _ target: String = notes, _ headers: [String: String] = [:],
    body: String = #"{"text":"once"}"#, to other: TestServer? = nil
  ) throws -> WireResponse {
    let headers = headers.merging(["Idempotency-Key": key]) { given, _ in given }
    return try (other ?? server).client.send("POST", target, headers, body: body)
  }

  /// Returns the text of a POST with a key, for a connection that is not read.
  private func text(_ key: String, for server: TestServer, _ body: String = #"{"text":"once"}"#) -> String {
    """
    POST \(Self.notes) HTTP/1.1\r\nHost: 127.0.0.1:\(server.client.port)\r\nIdempotency-Key: \(key)\r
    Content-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)
    """
  }

  private func metric(_ name: String, of server: TestServer) throws -> Int? {
    let lines = try server.client.must("GET", "/metrics").text.split(separator: "\n")
    return lines.first { $0.hasPrefix(name + " ") }?.split(separator: " ").last.flatMap { Double($0) }.map { Int($0) }
  }

  /// Runs `body` while a request with `key` is in progress and cannot be answered, because publication is blocked.
  private func whileUnderWay(
    _ key: String, on server: TestServer, _ body: (WireSocket) throws -> Void
  ) throws -> WireSocket {
    let socket = try WireSocket(port: server.client.port)
    try server.server.store.withPublication { (_) throws in
      try socket.send(text(key, for: server))
      #expect(try Deadline().awaits { try metric("keyway_idempotency_keys", of: server) == 1 })
      try body(socket)
    }
    return socket
  }

  @Test("A retried create makes one object and one revision, and gets the very same answer, marked")
  func create() throws {
    let before = try server.revision
    let first = try post("\"a-1\"")
    #expect(first.status == 201)
    #expect(first["Idempotency-Replayed"] == nil)
    try server.set("Account/1/visits", "1")
    for key in ["\"a-1\"", "a-1"] {
      let retry = try post(key)
      #expect(retry.status == 201)
      #expect(retry["Idempotency-Replayed"] == "true")
      #expect(retry.body == first.body && !retry.body.isEmpty)
      for name in ["Location", "ETag", "Keyway-Cursor", "Content-Type"] {
        #expect(first[name] != nil && retry[name] == first[name], "\(name)")
      }
    }
    #expect(try server.revision == before + 2)
    #expect(try server.client.json(Self.notes)["objects"].items.count == 2)
    #expect(try post("a-2")["Location"] != first["Location"])
  }

  @Test("A retried transaction applies once and tells its streams once, also when its objects are gone since")
  func transaction() throws {
    let stream = try server.subscribed("Account/1/visits")
    let body = #"""
      {"operations":[{"op":"create","object":"Note/9","value":{}},
      {"op":"set","object":"Account/1","keyPath":"visits","value":7}]}
      """#
    let first = try post("t", Self.transactions, body: body)
    #expect(first.status == 200)
    try server.client.must("DELETE", "/v1/objects/Note/9")
    let retry = try post("t", Self.transactions, body: body)
    #expect(retry.status == 200 && retry.body == first.body)
    #expect(try server.client.send("GET", "/v1/objects/Note/9").status == 404)
    try server.set("Account/1/visits", "8")
    #expect(try stream.next().changes.map { $0["new"].whole } == [7])
    #expect(try stream.next().changes.map { $0["new"].whole } == [8])
  }

  @Test("A POST of members, which this version's schemas refuse, does not hold its key")
  func members() throws {
    #expect(try post("k", "/v1/objects/Account/404/visits", body: "1").problem == "unknown-object")
    #expect(try post("k", "/v1/objects/Account/1/visits", body: "1").problem == "not-a-collection")
    #expect(try metric("keyway_idempotency_keys", of: server) == 0)
  }

  @Test("The same key with another target, body, type, writer or condition is 422 and changes nothing")
  func reused() throws {
    let first = try post("k", Self.transactions, ["Keyway-Writer": "me"], body: Self.visit)
    #expect(first.status == 200)
    let before = try server.revision
    let json = "application/json; charset=utf-8"
    let others: [(target: String, headers: [String: String], body: String)] = [
      (Self.transactions + "?", ["Keyway-Writer": "me"], Self.visit), (Self.notes, ["Keyway-Writer": "me"], Self.visit),
      (Self.transactions, ["Keyway-Writer": "me"], Self.visit + " "), (Self.transactions, [:], Self.visit),
      (Self.transactions, ["Keyway-Writer": "you"], Self.visit),
      (Self.transactions, ["Keyway-Writer": "me", "Content-Type": json], Self.visit),
      (Self.transactions, ["Keyway-Writer": "me", "If-Match": "*"], Self.visit),
      (Self.transactions, ["Keyway-Writer": "me", "If-None-Match": "*"], Self.visit),
    ]
    for (target, headers, body) in others {
      let other = try post("k", target, headers, body: body)
      #expect(other.status == 422 && other.problem == "idempotency-key-reused", "\(target) \(headers)")
    }
    #expect(try server.revision == before)
    #expect(try post("k", Self.transactions, ["Keyway-Writer": "me"], body: Self.visit).body == first.body)
    #expect(try server.client.json("/v1/problems/idempotency-key-reused")["status"].whole == 422)
    #expect(try server.client.json("/v1/problems/idempotency-key-in-use")["status"].whole == 409)
  }

  @Test("A request that failed is not remembered: the retry is carried out afresh, and so is another with its key")
  func failure() throws {
    let create = #"{"operations":[{"op":"set","object":"Note/7","keyPath":"text","value":"x"}]}"#
    let bodies = ["{", "[]", #"{"operations":[{"op":"nope"}]}"#, create]
    for body in bodies {
      let status = try post("k", Self.transactions, body: body).status
      #expect((400..<500).contains(status), "\(body)")
      #expect(try metric("keyway_idempotency_keys", of: server) == 0, "\(body)")
    }
    #expect(try post("k", Self.transactions, ["Content-Type": "text/plain"], body: create).status == 415)
    try server.client.must("PUT", "/v1/objects/Note/7", body: "{}")
    let second = try post("k", Self.transactions, body: create)
    #expect(second.status == 200 && second["Idempotency-Replayed"] == nil)
    #expect(try post("k", Self.transactions, body: create)["Idempotency-Replayed"] == "true")
  }

  @Test("A malformed key is 400 with the name of the header, and the request is not carried out")
  func malformed() throws {
    let before = try server.revision
    for key in ["", "\"a", "a b", String(repeating: "k", count: 256)] {
      let response = try post(key)
      #expect(response.status == 400 && response.problem == "malformed-query", "'\(key)'")
      #expect(response.json["detail"].text?.contains("Idempotency-Key") == true)
    }
    #expect(try server.revision == before)
  }

  @Test("Methods that are idempotent by themselves, and POST of a stream, do not heed the header")
  func unheeded() throws {
    for (method, target, body) in [("PUT", "/v1/objects/Note/1/text", #""x""#), ("PATCH", "/v1/objects/Note/1", "{}")] {
      for key in ["k", "k", "\"broken"] {
        let response = try server.client.send(method, target, ["Idempotency-Key": key], body: body)
        #expect(response.status == 200 && response["Idempotency-Replayed"] == nil, "\(method) \(key)")
      }
    }
    for _ in 0..<2 {
      let stream = try server.client.stream(
        "/v1/streams", ["Idempotency-Key": "k"], method: "POST", body: #"{"cells":{}}"#)
      #expect(stream.head["Idempotency-Replayed"] == nil)
    }
    #expect(try metric("keyway_idempotency_keys", of: server) == 0)
  }

  @Test("A retry while the first is under way is 409 with Retry-After, and afterwards gets its answer")
  func underWay() throws {
    let before = try server.revision
    let socket = try whileUnderWay("k", on: server) { _ in
      let retry = try post("k")
      #expect(retry.status == 409 && retry.problem == "idempotency-key-in-use")
      #expect(retry["Retry-After"] == "1")
      #expect(try post("k", body: "{}").problem == "idempotency-key-reused")
    }
    let first = try WireReader(socket).response(hasBody: true, before: Deadline())
    #expect(first.status == 201)
    let retry = try post("k")
    #expect(retry["Idempotency-Replayed"] == "true" && retry.body == first.body)
    #expect(try server.revision == before + 1)
  }

  @Test("Of concurrent retries one is applied, and all that wait for it get its answer")
  func concurrentRetries() throws {
    let before = try server.revision
    let port = server.client.port
    let answers = Locked<[WireResponse]>([])
    let group = DispatchGroup()
    for _ in 0..<8 {
      group.enter()
      Thread.detachNewThread {
        let client = WireClient(port: port)
        for number in 0..<10 {
          var answer: WireResponse?
          _ = Deadline().awaits {
            answer = try? client.send("POST", Self.notes, ["Idempotency-Key": "k\(number)"], body: "{}")
            return answer?.status != 409
          }
          if let answer { answers.withLock { $0.append(answer) } }
        }
        group.leave()
      }
    }
    #expect(group.wait(timeout: .now() + Deadline.patienceSeconds) == .success)
    let all = answers.withLock { $0 }
    #expect(all.count == 80 && all.allSatisfy { $0.status == 201 })
    #expect(Set(all.compactMap { $0["Location"] }).count == 10)
    #expect(all.filter { $0["Idempotency-Replayed"] == nil }.count == 10)
    #expect(try server.revision == before + 10)
  }

  @Test("A client that hung up before the answer finds it when it comes back")
  func hungUp() throws {
    let before = try server.revision
    _ = try whileUnderWay("k", on: server) { $0.reset() }
    var retry = try post("k")
    #expect(
      try Deadline().awaits {
        if retry.status == 409 { retry = try post("k") }
        return retry.status != 409
      })
    #expect(retry.status == 201 && retry["Idempotency-Replayed"] == "true")
    #expect(try server.client.send("GET", try #require(retry["Location"])).status == 200)
    #expect(try server.revision == before + 1)
  }

  @Test("An answer is forgotten after its seconds, and the retry is then a request of its own")
  func expiry() throws {
    let clock = Locked<UInt64>(1_000)
    let server = try TestServer({ $0.idempotency.seconds = 30 }, now: { clock.withLock { $0 } })
    let first = try post("k", to: server)
    clock.withLock { $0 += 29 }
    #expect(try post("k", to: server)["Location"] == first["Location"])
    clock.withLock { $0 += 1 }
    let late = try post("k", to: server)
    #expect(late.status == 201 && late["Idempotency-Replayed"] == nil)
    #expect(late["Location"] != first["Location"])
  }

  @Test("Over the bound of keys or of bytes the new request is 503 and not carried out; no answer is forgotten")
  func overflow() throws {
    let body = #"{"text":"\#(String(repeating: "x", count: 5_000))"}"#
    let bounds: [@Sendable (inout KeywayServer.Configuration) -> Void] = [
      { $0.idempotency.keys = 4 }, { $0.idempotency.bytes = 26_000 },
    ]
    for bound in bounds {
      let server = try TestServer(bound)
      for key in ["a", "b"] { #expect(try post(key, body: body, to: server).status == 201) }
      let before = try server.revision
      for _ in 0..<3 {
        let refused = try post("c", body: body, to: server)
        #expect(refused.status == 503 && refused.problem == "overloaded" && refused["Retry-After"] == "1")
      }
      #expect(try server.revision == before)
      #expect(try metric("keyway_idempotency_keys", of: server) == 2)
      for key in ["a", "b"] { #expect(try post(key, body: body, to: server)["Idempotency-Replayed"] == "true") }
      #expect(try server.client.send("POST", Self.notes, body: body).status == 201, "without a key there is room")
    }
  }

  @Test("A stranger that sends thousands of keys takes none from another client, whose retry does not apply twice")
  func strangers() throws {
    let server = try TestServer { $0.idempotency.keys = 100 }
    let neighbour = Neighbour(port: server.client.port)
    func neighbours(_ key: String) throws -> (status: Substring, isReplay: Bool) {
      let response = try neighbour.send("POST", Self.notes, ["Idempotency-Key": key], body: "{}")
      return (response.dropFirst(9).prefix(3), response.contains("Idempotency-Replayed: true"))
    }
    #expect(try neighbours("mine").status == "201")
    var refused = 0
    for number in 0..<120 where try post("s\(number)", body: "{}", to: server).status == 503 { refused += 1 }
    #expect(refused == 70, "half of the keys is one client's share")
    let before = try server.revision
    let retry = try neighbours("mine")
    #expect(retry.status == "201" && retry.isReplay)
    #expect(try server.revision == before)
    #expect(try neighbours("other").status == "201")
  }

  @Test("A request that alone is over the bound of bytes is 413; where those under way leave no room it is 503")
  func noRoom() throws {
    let small = try TestServer { $0.idempotency.bytes = 4_000 }
    let large = try post("k", body: #"{"text":"\#(String(repeating: "x", count: 2_000))"}"#, to: small)
    #expect(large.status == 413 && large.problem == "content-too-large")
    let single = try TestServer { $0.idempotency.keys = 1 }
    let before = try single.revision
    let socket = try whileUnderWay("a", on: single) { _ in
      let other = try post("b", to: single)
      #expect(other.status == 503 && other.problem == "overloaded" && other["Retry-After"] == "1")
    }
    #expect(try WireReader(socket).response(hasBody: true, before: Deadline()).status == 201)
    #expect(try single.revision == before + 1)
  }
}

@Suite("Idempotency keys")
struct IdempotencyKeyTests {
  @Test(
    "A key is a quoted string of structured fields, or bare; both forms of one text are one key",
    arguments: [
      (#""8e03978e-40d5""#, "8e03978e-40d5"), ("8e03978e-40d5", "8e03978e-40d5"), ("  \"a\"\t", "a"), ("!", "!"),
      (#""a\"b\\c""#, #"a"b\c"#), (#"a\b"#, #"a\b"#), ("a,b;c=d", "a,b;c=d"),
      (String(repeating: "~", count: 255), String(repeating: "~", count: 255)),
    ])
  func wellFormed(_ header: String, _ text: String) throws {
    #expect(try IdempotencyKey(header).text == text)
  }

  @Test(
    "A key that is empty, too long, not visible ASCII, wrongly quoted, with parameters or sent twice is malformed",
    arguments: [
      "", "  ", "\"\"", "a b", "\"a b\"", "a, b", "\"a\", \"b\"", "\"a", "a\"", "a\"b", "\"a\"b", "\"a\\", #""a\b""#,
      "\"a\";v=1", "schlüssel", "a\u{7F}", "\"a\tb\"", "\u{FFFD}", String(repeating: "a", count: 256),
    ])
  func malformed(_ header: String) {
    #expect(
      performing: { try IdempotencyKey(header) },
      throws: {
        ($0 as? Problem)?.code == .malformedQuery && ($0 as? Problem)?.detail.contains("Idempotency-Key") == true
      })
  }
}
