import Foundation
import HTTPServer
import HTTPTypes
import KeyValueModel
import Store
import Support
import TestKit
import Testing

@testable import Cluster
@testable import KeywayServer

/// A server's handling of batches: it handles each request in a batch like a single one.
@Suite("Batches at a server", .timeLimit(.minutes(60))) struct BatchHandlerTests {
  private static func client(_ server: TestServer) throws -> NodeClient {
    NodeClient(try NodeAddress("http://127.0.0.1:\(server.client.port)"), keeping: 2)
  }

  private static func request(
    _ server: TestServer, _ method: String, _ target: String, _ body: String = "", _ fields: [String: String] = [:]
  ) throws -> NodeRequest {
    var request = NodeRequest(method, target)
    request.fields = [("Content-Type", "application/json")] + fields.map { ($0.key, $0.value) }
    request.body = Array(body.utf8)
    return request.naming(PassedWrite(since: try #require(Cursor("\(server.epoch)-0"))))
  }

  private static func post(
    _ server: TestServer, _ bytes: [UInt8], _ fields: [String: String] = [:]
  ) throws -> NodeAnswer {
    var request = NodeRequest("POST", WriteBatch.target)
    request.fields = [("Content-Type", WriteBatch.mediaType)] + fields.map { ($0.key, $0.value) }
    request.body = bytes
    return try client(server).send(request, silence: .seconds(60), limit: 32 << 20)
  }

  /// Sends requests together. Returns the responses.
  private static func answers(
    _ server: TestServer, _ requests: [NodeRequest], _ fields: [String: String] = [:]
  ) throws -> [NodeAnswer] {
    let answer = try post(server, WriteBatch.encoded(requests), fields)
    guard answer.status == 200 else { throw LoopbackError(String(decoding: answer.body, as: UTF8.self)) }
    return try WriteBatch.answers(in: answer.body, count: requests.count).answers
  }

  private static func problem(_ answer: NodeAnswer) -> String? {
    guard let value = try? Value(json: answer.body), case .object(let body) = value,
      case .string(let type)? = body["type"]
    else { return nil }
    return type.split(separator: "/").last.map(String.init)
  }

  @Test("Each request gets what it would get alone, in order: what is done, and what is refused for any reason")
  func mixed() throws {
    let server = try TestServer { $0.cluster.followers = true }
    let visits = "/v1/objects/Account/1/visits"
    let requests: [(NodeRequest, Int, String?)] = [
      (try Self.request(server, "PUT", visits, "7"), 200, nil),
      (try Self.request(server, "POST", "/v1/objects/Note", #"{"text":"new"}"#), 201, nil),
      (try Self.request(server, "PUT", "/v1/objects/Note/none/text", "\"x\""), 404, "unknown-object"),
      (try Self.request(server, "PUT", visits, "{"), 400, "malformed-json"),
      (try Self.request(server, "PUT", visits, "\"x\""), 422, "invalid-value"),
      (try Self.request(server, "DELETE", "/v1/objects/Account/1"), 409, "delete-denied"),
      (try Self.request(server, "PUT", visits, "8", ["If-Match": "\"none\""]), 412, "stale-revision"),
      (try Self.request(server, "DELETE", "/v1/objects/Note/1"), 204, nil),
      (try Self.request(server, "POST", "/v1/transactions", #"{"operations":[]}"#), 200, nil),
      (
        try Self.request(server, "PATCH", "/v1/objects/Account/1", #"{"visits":9}"#, ["X-Request-Id": "mine"]), 200, nil
      ),
      (
        try Self.request(server, "PUT", "/v1/objects/Account/1/nothing", "1", ["X-Request-Id": "id-1"]), 404,
        "undefined-key"
      ),
    ]
    let answers = try Self.answers(server, requests.map(\.0))
    for (index, (answer, expected)) in zip(answers, requests).enumerated() {
      #expect(answer.status == expected.1 && Self.problem(answer) == expected.2, "\(index): \(answer.status)")
    }
    #expect(String(decoding: answers[10].body, as: UTF8.self).contains(#""requestId":"id-1""#))
    #expect(String(decoding: answers[2].body, as: UTF8.self).contains(#".2""#))
    #expect(answers[0]["Keyway-Cursor"] != nil && answers[1]["Location"] != nil)
    #expect(try server.client.send("GET", visits).text == "9\n")
    // The same requests are not carried out again.
    let before = try server.revision
    let again = try Self.answers(server, Array(requests.map(\.0).prefix(2)))
    #expect(zip(again, answers).allSatisfy { $0.status == $1.status && $0.body == $1.body })
    #expect(try server.revision == before)
  }

  @Test("An Idempotency-Key holds within a batch and beyond it, and metrics count each request by itself")
  func keys() throws {
    let server = try TestServer { $0.cluster.followers = true }
    func create() throws -> NodeRequest {
      try Self.request(server, "POST", "/v1/objects/Note", #"{"text":"once"}"#, ["Idempotency-Key": "mine"])
    }
    let first = try Self.answers(server, [create()])
    let more = try Self.answers(server, [create(), create()])
    #expect(first[0].status == 201)
    for answer in more { #expect(answer.body == first[0].body && answer["Idempotency-Replayed"] == "true") }
    let metrics = try server.client.send("GET", "/metrics").text
    for (route, count) in [("/v1/objects/{Entity}", 3), ("/v1/nodes/writes", 2)] {
      let line = metrics.split(separator: "\n").first {
        $0.hasPrefix("keyway_requests_total{") && $0.contains("route=\"\(route)\"") && $0.contains("POST")
      }
      #expect(line?.hasSuffix(" \(count)") == true, "\(route): \(line ?? "no line")")
    }
  }

  @Test("Only writes that have a name are taken: no reading, no stream, no other batch, nothing beside")
  func strangers() throws {
    let server = try TestServer { $0.cluster.followers = true }
    func unnamed(_ method: String, _ target: String) -> NodeRequest {
      var request = NodeRequest(method, target)
      request.fields = [("Content-Type", "application/json"), ("Accept", "text/event-stream")]
      request.body = Array("{}".utf8)
      return request
    }
    var nested = try Self.request(server, "POST", WriteBatch.target)
    nested.fields[0].value = WriteBatch.mediaType
    nested.body = WriteBatch.encoded([try Self.request(server, "PUT", "/v1/objects/Note/1/text", "\"x\"")])
    let requests = [
      unnamed("PUT", "/v1/objects/Note/9"), try Self.request(server, "GET", "/v1/objects/Note/1"),
      try Self.request(server, "HEAD", "/v1/objects/Note/1"), unnamed("GET", "/v1/streams"),
      try Self.request(server, "POST", "/v1/streams", "{}", ["Accept": "text/event-stream"]), nested,
      try Self.request(server, "OPTIONS", "/v1/objects/Note/1"), try Self.request(server, "GET", "/metrics"),
    ]
    let before = try server.revision
    for answer in try Self.answers(server, requests) {
      #expect(answer.status == 422 && Self.problem(answer) == "invalid-value")
    }
    let missing = try Self.answers(server, [try Self.request(server, "PUT", "/v1/x", "1")])
    #expect(Self.problem(missing[0]) == "not-found")
    #expect(try server.revision == before)
  }

  @Test("A body that is not a batch is refused with the reason, and nothing of it is done")
  func malformed() throws {
    let server = try TestServer { $0.cluster.followers = true }
    let good = WriteBatch.encoded([try Self.request(server, "PUT", "/v1/objects/Account/1/visits", "5")])
    let before = try server.revision
    for (bytes, text) in [
      ([], "ends at byte 0"), (Array(good.dropLast()), "ends at byte \(good.count - 1)"),
      (good + [1], "1 bytes follow"), (WriteBatch.encoded([NodeRequest]()), "at least one write"),
      (WriteBatch.encoded([NodeRequest("PUT", "x")]), "request 0 "),
    ] {
      let answer = try Self.post(server, bytes)
      #expect(answer.status == 400 && Self.problem(answer) == "malformed-request")
      #expect(String(decoding: answer.body, as: UTF8.self).contains(text))
    }
    #expect(try Self.post(server, good, ["Content-Type": "x"]).status == 415)
    #expect(try server.client.send("GET", "/v1/nodes/writes").status == 405)
    #expect(try server.revision == before)
  }

  @Test("A batch is taken from a node alone; each request is judged by its own token, and not by that of the batch")
  func access() throws {
    let guarded = try GuardedServer { $0.cluster.followers = true }
    let server = guarded.server
    func put(_ headers: [String: String]) throws -> NodeRequest {
      try Self.request(server, "PUT", "/v1/objects/Account/1/visits", "5", headers)
    }
    let requests = [
      try put([:]), try put(guarded.reader), try put(guarded.admin), try put(["Authorization": "Bearer x"]),
      try Self.request(server, "PUT", "/v1/access/revocations/bob", "{}"),
    ]
    let statuses = try Self.answers(server, requests, guarded.admin).map(\.status)
    #expect(statuses == [401, 404, 200, 401, 401])
    let before = try server.client.must("GET", "/v1/status", guarded.admin).json["revision"]
    for (headers, status) in [([:], 401), (guarded.reader, 403)] {
      #expect(try Self.post(server, WriteBatch.encoded([put(guarded.admin)]), headers).status == status)
    }
    #expect(try server.client.must("GET", "/v1/status", guarded.admin).json["revision"] == before)
  }

  @Test("Each request counts for its own client's rate, by address only where the sender is a trusted proxy")
  func rates() throws {
    func statuses(_ proxies: [String], _ outer: [String: String] = [:]) throws -> [Int] {
      let server = try TestServer(objects: []) {
        $0.cluster.followers = true
        $0.access.proxies = proxies
        $0.access.rates.requestsPerSecond = 2
      }
      let requests = try (1...8).map { number in
        try Self.request(server, "PUT", "/v1/objects/Note/\(number)", "{}", ["X-Forwarded-For": "198.51.100.\(number)"])
      }
      return try Self.answers(server, requests, outer).map(\.status)
    }
    #expect(try statuses(["127.0.0.1"]).allSatisfy { $0 == 201 })
    // The batch itself has taken one.
    #expect(try statuses([]).count { $0 == 429 } >= 6)
    // A client behind a proxy is not a trusted proxy: the header inside of its batch does not determine the address.
    #expect(try statuses(["127.0.0.1"], ["X-Forwarded-For": "203.0.113.1"]).count { $0 == 429 } >= 6)
  }

  @Test("A request that has to wait for a state is handled when it is there, and the others with it")
  func postponed() throws {
    let server = try TestServer { $0.cluster.followers = true }
    let next = "\(server.epoch)-\(try server.revision + 1)"
    let requests = [
      try Self.request(server, "PUT", "/v1/objects/Account/1/visits", "5", ["Keyway-Cursor": next]),
      try Self.request(server, "PUT", "/v1/objects/Account/2/visits", "6"),
    ]
    let answers = try Self.answers(server, requests)
    #expect(answers.map(\.status) == [200, 200])
    #expect(try server.client.send("GET", "/v1/objects/Account/1/visits").text == "5\n")
    let quick = try TestServer {
      $0.cluster.followers = true
      $0.waits.seconds = 1
    }
    let far = try Self.request(
      quick, "PUT", "/v1/objects/Account/1/visits", "7", ["Keyway-Cursor": "\(quick.epoch)-100000"])
    let behind = try Self.answers(quick, [far, try Self.request(quick, "PUT", "/v1/objects/Account/2/visits", "6")])
    #expect(behind.map(\.status) == [503, 200] && Self.problem(behind[0]) == "behind")
  }

  @Test("The position of a forwarding node is read back unchanged; a text that is not a position is ignored")
  func places() throws {
    let place = HandedPlace(cursor: try #require(Cursor("e-17")), digest: JournalDigest(value: 0xfedc))
    #expect(place.field == "e-17 fedc" && HandedPlace(place.field) == place)
    for text in ["", "e-17", "e-17 ", "e-17 x", "e-17 +1", "e-17 1 2", "17 1", "e-17 11111111111111111"] {
      #expect(HandedPlace(text) == nil, "\(text)")
    }
  }

  @Test("A node that shares its journal with none hands no records over, whatever the sender asks for")
  func noRecords() throws {
    let server = try TestServer { $0.cluster.followers = true }
    let write = try Self.request(server, "PUT", "/v1/objects/Account/1/visits", "7")
    let answer = try Self.post(server, WriteBatch.encoded([write]), ["Keyway-Records": "\(server.epoch)-0 0"])
    #expect(answer.status == 200 && answer.body.starts(with: Array("kwa1".utf8)))
  }

  @Test("The records that go with the answers are looked for when all of it is done")
  func recordsLast() throws {
    let record = JournalRecord(revision: 4, milliseconds: 1, body: [1, 2])
    let handed = try #require(HandedRecords([record], digest: .start, pen: "a"))
    let (isDone, sent) = (Locked(false), Locked<HandedRecords?>(nil))
    let batch = BatchAnswers(of: 2) {
      isDone.withLock { $0 } ? handed : nil
    } _: { response in
      sent.withLock { $0 = (try? WriteBatch.answers(in: response.body, count: 2))?.handed }
    }
    batch.add(Response(status: .ok), at: 1)
    isDone.withLock { $0 = true }
    batch.add(Response(status: .ok), at: 0)
    #expect(sent.withLock { $0 } == handed)
  }

  @Test("Answers that are too large together lose the content of what was done, and no more")
  func largeAnswers() throws {
    let sent = Locked<Response?>(nil)
    let small = Response(status: .ok, body: Array("small".utf8))
    let large = Response(status: .created, fields: [.location: "/x"], body: [UInt8](repeating: 0x20, count: 90))
    let refusal = Response(status: .conflict, body: [UInt8](repeating: 0x21, count: 90))
    let answers = Locked<[NodeAnswer]>([])
    let batch = BatchAnswers(of: 4, limit: 100) { response in
      sent.withLock { $0 = response }
      answers.withLock { $0 = (try? WriteBatch.answers(in: response.body, count: 4).answers) ?? [] }
    }
    batch.add(large, at: 3)
    batch.add(refusal, at: 0)
    batch.add(large, at: 1)
    #expect(sent.withLock { $0 } == nil)
    batch.add(small, at: 2)
    let got = answers.withLock { $0 }
    #expect(got.map(\.status) == [409, 201, 204, 201])
    #expect(got.map(\.body.count) == [90, 0, 0, 90])
    #expect(got[1]["Location"] == "/x")
  }
}
