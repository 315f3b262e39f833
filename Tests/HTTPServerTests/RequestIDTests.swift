import HTTPTypes
import TestKit
import Testing

@testable import HTTPServer

@Suite(.serialized, .timeLimit(.minutes(60))) struct RequestIDTests {
  /// Makes a server that answers by path: with a status, later, or with a stream.
  private static func server() throws -> TestServer {
    try TestServer(limits: .with { $0.bodyBytes = 10 }) { request, hub in
      switch request.target {
      case "/stream":
        .stream(
          try hub.open(prelude: EventBytes(Array("retry: 1\n\n".utf8)), channel: nil),
          fields: [.contentType: "text/event-stream"])
      case "/later": .deferred { $0.respond(Response(status: .ok)) }
      case "/never": .deferred { _ in }
      case "/304": .response(Response(status: .notModified))
      default: .response(Response(status: .ok, body: Array(request.id.text.utf8)))
      }
    }
  }

  private static func value(_ name: String, in head: String) -> [Substring] {
    head.split(separator: "\r\n").filter { $0.hasPrefix(name + ": ") }.map { $0.dropFirst(name.count + 2) }
  }

  /// Heads of requests for every kind of response: an ordinary one, one without content, a deferred one, one that never
  /// comes, a stream, and refusals before the handler is called.
  static let requests = [
    "GET / HTTP/1.1\r\n", "HEAD / HTTP/1.1\r\n", "GET /304 HTTP/1.1\r\n", "GET /later HTTP/1.1\r\n",
    "GET /never HTTP/1.1\r\n", "GET /stream HTTP/1.1\r\n", "HEAD /stream HTTP/1.1\r\n",
    "PUT / HTTP/1.1\r\nContent-Length: 11\r\n", "PUT / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n",
  ]

  /// Heads that are refused before their id is read.
  static let refusedAtOnce = [
    "GET /\u{1} HTTP/1.1\r\n", "P(T / HTTP/1.1\r\n", "PUT / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n",
  ]

  @Test(arguments: requests) func theIDOfARequestIsAnswered(request: String) throws {
    let test = try Self.server()
    let client = try test.client()
    client.send("\(request)Host: a\r\nX-Request-ID: one\"two\\three\r\n\r\n")
    let head = client.read(until: "\r\n\r\n")
    #expect(Self.value("X-Request-Id", in: head) == ["one\"two\\three"], "\(head)")
  }

  @Test(arguments: requests + refusedAtOnce) func aRequestWithoutIDGetsOne(request: String) throws {
    let test = try Self.server()
    var ids: Set<Substring> = []
    for _ in 0..<3 {
      let client = try test.client()
      client.send("\(request)Host: a\r\n\r\n")
      let head = client.read(until: "\r\n\r\n")
      let found = Self.value("X-Request-Id", in: head)
      #expect(found.count == 1 && found[0].wholeMatch(of: /[0-9a-v]{7}-[0-9a-v]+/) != nil, "\(head)")
      ids.formUnion(found)
    }
    #expect(ids.count == 3)
  }

  @Test(arguments: requests + refusedAtOnce)
  func everyResponseSaysThatItIsNotToBeGuessedAndNotToBeEmbedded(request: String) throws {
    let test = try Self.server()
    let client = try test.client()
    client.send("\(request)Host: a\r\n\r\n")
    let head = client.read(until: "\r\n\r\n")
    #expect(Self.value("X-Content-Type-Options", in: head) == ["nosniff"], "\(head)")
    #expect(Self.value("Cross-Origin-Resource-Policy", in: head) == ["same-origin"], "\(head)")
  }

  @Test(arguments: [
    "X-Request-Id: \(String(repeating: "x", count: 129))\r\n", "X-Request-Id: \r\n", "X-Request-Id: a b\r\n",
    "X-Request-Id: a\tb\r\n", "X-Request-Id: é\r\n",
    "X-Request-Id: a\r\nX-Request-Id: a\r\n",
  ]) func whatIsNoIDIsReplaced(line: String) throws {
    let test = try Self.server()
    let client = try test.client()
    client.get("/", line)
    let response = client.readResponse()
    #expect(response.body.wholeMatch(of: /[0-9a-v]{7}-[0-9a-v]+/) != nil, "\(response)")
    #expect(Self.value("X-Request-Id", in: response.head) == [response.body[...]])
  }

  @Test func theLongestIDIsTaken() throws {
    let test = try Self.server()
    let client = try test.client()
    let id = String(repeating: "~", count: 128)
    client.get("/", "X-Request-Id: \(id)\r\n")
    #expect(client.readResponse().body == id)
    client.get("/")
    #expect(client.readResponse().body != id)
  }

  @Test func idsOfOneServerDifferAndBeginWithItsWord() {
    let (ids, others) = (RequestIDs(random: 7), RequestIDs(random: 8))
    let made = (0..<70_000).map { _ in ids.next().text }
    #expect(Set(made).count == made.count)
    #expect(made.first == "7000000-1" && made[31] == "7000000-10" && made[32_767] == "7000000-1000")
    #expect(others.next().text == "8000000-1")
  }
}
