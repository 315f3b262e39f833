import Glibc
import HTTPTypes
import Testing

@testable import HTTPServer

@Suite(.serialized, .timeLimit(.minutes(60))) struct RequestTests {
  /// Echoes the request.
  private static let echo: @Sendable (borrowing Request, StreamHub) -> HandlerResponse = { request, _ in
    let body = String(decoding: request.body(), as: UTF8.self)
    let text =
      "\(request.method.rawValue) \(request.target) \(request.header(HTTPField.Name("X-A") ?? .accept) ?? "-") \(body)"
    return .response(Response(status: .ok, fields: [.contentType: "text/plain"], body: Array(text.utf8)))
  }

  @Test(arguments: ["GET", "DELETE", "OPTIONS", "FROB"]) func everyMethodReachesTheHandler(method: String) throws {
    let test = try TestServer(answer: Self.echo)
    let client = try test.client()
    client.send("\(method) /v1/a%2Fb/c?x=%20&y HTTP/1.1\r\nHost: a\r\nX-A: 1\r\nx-a: 2\r\n\r\n")
    #expect(client.readResponse().body == "\(method) /v1/a%2Fb/c?x=%20&y 1, 2 ")
  }

  @Test func headHasTheHeadersOfGetAndNoBody() throws {
    let test = try TestServer(answer: { request, _ in .response(Response(status: .ok, body: Array("four".utf8))) })
    let client = try test.client()
    client.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n")
    let head = client.read(until: "\r\n\r\n")
    #expect(head.contains("Content-Length: 4\r\n"))
    #expect(client.readResponse().head.hasPrefix("HTTP/1.1 200 OK\r\n"))
  }

  @Test(arguments: [204, 304]) func someStatusesHaveNoBody(code: Int) throws {
    let test = try TestServer { request, _ in
      .response(Response(status: request.target == "/" ? .init(code: code) : .ok, body: Array("body".utf8)))
    }
    let client = try test.client()
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n")
    #expect(client.read(until: "\r\n\r\n").hasPrefix("HTTP/1.1 \(code) "))
    #expect(client.readResponse().head.hasPrefix("HTTP/1.1 200 "))
  }

  @Test func pipelinedRequestsAreAnsweredInOrder() throws {
    let test = try TestServer(answer: Self.echo)
    let client = try test.client()
    client.send((0..<50).map { "GET /\($0) HTTP/1.1\r\nHost: a\r\n\r\n" }.joined())
    for number in 0..<50 { #expect(client.readResponse().body == "GET /\(number) - ") }
  }

  @Test func aConnectionIsKeptForTheNextRequest() throws {
    let test = try TestServer(answer: Self.echo)
    let client = try test.client()
    for number in 0..<3 {
      client.send("PUT /\(number) HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc")
      #expect(client.readResponse().body == "PUT /\(number) - abc")
    }
    #expect(test.server.openConnections == 1)
  }

  @Test func anOldClientIsAnsweredAndItsConnectionClosed() throws {
    let test = try TestServer(answer: Self.echo)
    let client = try test.client()
    client.send("GET / HTTP/1.0\r\n\r\n")
    #expect(client.readToEnd().hasSuffix("\r\n\r\nGET / - "))
  }

  @Test func aChunkedBodyArrivesWhole() throws {
    let test = try TestServer(answer: Self.echo)
    let client = try test.client()
    client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
    #expect(client.readResponse().body == "POST / - abcde")
  }

  @Test func aClientThatExpectsToBeAskedIsAskedForItsBody() throws {
    let test = try TestServer(answer: Self.echo)
    let client = try test.client()
    client.send("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
    #expect(client.read(until: "\r\n\r\n").hasPrefix("HTTP/1.1 100 Continue"))
    client.send("abc")
    #expect(client.readResponse().body == "PUT / - abc")
  }

  @Test(arguments: ["", "Expect: 100-continue\r\n"]) func aBodyDeclaredTooLongIsRefusedUnread(line: String) throws {
    let test = try TestServer(limits: .with { $0.bodyBytes = 100 }, answer: Self.echo)
    let client = try test.client()
    client.send("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 101\r\n\(line)\r\n")
    let response = client.readResponse()
    #expect(response.head.hasPrefix("HTTP/1.1 413 "))
    #expect(response.body == "bodyTooLarge(limit: 100)")
    #expect(client.readToEnd() == "" && client.isAtEnd)
  }

  @Test func aClientThatSendsTooMuchWithoutAskingStillHearsWhy() throws {
    let test = try TestServer(limits: .with { $0.bodyBytes = 100 }, answer: Self.echo)
    let client = try test.client()
    client.send("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 4000000\r\n\r\n")
    client.send(String(repeating: "x", count: 4_000_000))
    let response = client.readResponse()
    #expect(response.head.hasPrefix("HTTP/1.1 413 "))
    #expect(response.body == "bodyTooLarge(limit: 100)")
  }

  @Test func aBodyThatGrowsTooLongIsRefused() throws {
    let test = try TestServer(limits: .with { $0.bodyBytes = 100 }, answer: Self.echo)
    let client = try test.client()
    let chunk = "32\r\n" + String(repeating: "x", count: 50) + "\r\n"
    client.send("PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk + chunk + chunk + "0\r\n\r\n")
    #expect(client.readResponse().head.hasPrefix("HTTP/1.1 413 "))
  }

  @Test func aBodyWithoutEndIsCut() throws {
    let test = try TestServer(
      limits: .with {
        $0.bodyBytes = 100
        $0.requestSeconds = 1
      }, answer: Self.echo)
    let client = try test.client()
    client.send("PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in 0..<20 { client.send("32\r\n" + String(repeating: "x", count: 50) + "\r\n") }
    _ = client.readToEnd()
    #expect(client.isAtEnd)
  }

  @Test(arguments: [
    "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    "PUT /\u{1} HTTP/1.1\r\nHost: a\r\n\r\n",
    "P(T / HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET / HTTP/1.1\r\n\r\n",
  ]) func aMalformedRequestIsRefused(request: String) throws {
    let test = try TestServer(answer: Self.echo)
    let client = try test.client()
    client.send(request)
    #expect(client.readResponse().head.hasPrefix("HTTP/1.1 400 "))
  }

  @Test func headersThatLeaveNoRoomAreRefused() throws {
    let test = try TestServer(limits: .with { $0.headerBytes = 4_096 }, answer: Self.echo)
    for size in [2_000, 3_200, 3_700, 6_000] {
      let client = try test.client()
      client.get("/", "X-B: \(String(repeating: "b", count: size))\r\n")
      let code = client.read(until: "\r\n\r\n").dropFirst(9).prefix(3)
      #expect(size < 3_500 ? code == "200" : ["400", "431"].contains(code), "\(size)")
    }
  }

  @Test func aSlowSenderIsCut() throws {
    let test = try TestServer(limits: .with { $0.requestSeconds = 1 }, answer: Self.echo)
    let client = try test.client()
    client.send("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n")
    var count = 0
    while !client.hasInput(milliseconds: 100), count < 3_000 {
      client.send("x")
      count += 1
    }
    #expect(client.readToEnd() == "" && client.isAtEnd)
    #expect(count < 3_000)
  }

  @Test func aConnectionWithoutRequestIsCut() throws {
    let test = try TestServer(limits: .with { $0.requestSeconds = 1 }, answer: Self.echo)
    let client = try test.client()
    #expect(client.readToEnd() == "" && client.isAtEnd)
  }

  @Test func aConnectionBeyondTheLimitIsClosedAtOnce() throws {
    let test = try TestServer(limits: .with { $0.connectionsPerAddress = 2 }, answer: Self.echo)
    let clients = [try test.client(), try test.client()]
    for client in clients {
      client.get("/")
      #expect(client.readResponse().body == "GET / - ")
    }
    let third = try test.client()
    third.get("/")
    #expect(third.readToEnd() == "" && third.isAtEnd)
  }

  @Test func bothFamiliesOfAddressesAreServed() throws {
    let test = try TestServer(host: "::", answer: Self.echo)
    let six = try TestClient(port: test.server.port, family: AF_INET6)
    six.get("/")
    #expect(six.readResponse().body == "GET / - ")
    let four = try test.client()
    four.get("/")
    #expect(four.readResponse().body == "GET / - ")
  }

  @Test func anAddressInUseIsAnErrorWithItsReason() throws {
    let test = try TestServer(answer: Self.echo)
    let port = test.server.port
    #expect(throws: HTTPServerError.cannotListen(host: "127.0.0.1", port: port, errno: EADDRINUSE)) {
      try ListeningSocket(host: "127.0.0.1", port: port)
    }
  }
}
