import KeyValueModel
import Testing
import WireTesting

@Suite("Malformed requests")
struct MalformedRequestTests {
  /// What is sent, and what it is answered with.
  struct Mistake: Sendable, CustomTestStringConvertible {
    let line: String
    var headers: [String] = []
    var body = ""
    let status: Int
    let code: String
    var answer: (name: String, value: String)?

    var testDescription: String { "\(line) \(headers.joined(separator: " ")) \(body.prefix(40))".prefix(110) + "" }

    /// The bytes of the request; `Host` and `Content-Length` are put in where nothing is said of them.
    var bytes: [UInt8] {
      var lines = ["\(line) HTTP/1.1"] + headers
      if !headers.contains(where: { $0.lowercased().hasPrefix("host:") }) { lines.append("Host: 127.0.0.1") }
      let isSaid = headers.contains { $0.hasPrefix("Content-Length") || $0.hasPrefix("Transfer-Encoding") }
      if !body.isEmpty, !isSaid { lines.append("Content-Length: \(body.utf8.count)") }
      return Array((lines.joined(separator: "\r\n") + "\r\n\r\n" + body).utf8)
    }
  }

  private static let json = "Content-Type: application/json"
  private static let balance = "/v1/objects/Account/1/balance"

  static let bodies = [
    "", "{", "[1", "\"", "nul", "01", "1.", ".5", "+1", "1e", "'a'", "[1,]", "{\"a\":1,}", "{a:1}", "{\"a\" 1}", "1 2",
    "\"\\x\"", "\"\\ud800\"", "\"\u{1}\"", "{\"a\":1,\"a\":1}", "NaN", "Infinity", "\u{feff}1",
    String(repeating: "[", count: 100_000),
  ].map { Mistake(line: "PUT \(balance)", headers: [json], body: $0, status: 400, code: "malformed-json") }

  static let targets: [Mistake] = [
    ("/v1/objects/Account/1/%", 400, "malformed-query"), ("/v1/objects/Account/1/%4", 400, "malformed-query"),
    ("/v1/objects/Account/1/%zz", 400, "malformed-query"), ("/v1/objects/Account/%ff", 400, "malformed-query"),
    ("/v1/objects/Account/%C0%AF", 400, "malformed-query"), ("\(balance)?since=%zz", 400, "malformed-query"),
    ("/v1/objects/Account/1?color=red", 400, "malformed-query"), ("\(balance)?keys=a", 400, "malformed-query"),
    ("/v1/objects/Account?limit=x", 400, "malformed-query"), ("/v1/objects/Account?limit=-1", 400, "malformed-query"),
    ("/v1/objects/Account?limit=1&limit=2", 400, "malformed-query"),
    ("/v1/objects/Account?page=", 400, "malformed-query"),
    ("/v1/objects/Account/1/balance..x", 400, "malformed-key-path"),
    ("/v1/objects/Account/1/", 400, "malformed-key-path"),
    ("/v1/objects/Account/1/balance%20", 400, "malformed-key-path"),
    ("/v1/objects/Account/1/@x", 400, "malformed-key-path"),
    ("/v1/objects/Account/1/nope", 404, "undefined-key"), ("/v1/objects/Account/1/balance.x", 404, "undefined-key"),
    ("/v1/objects/Planet/1", 404, "unknown-entity"), ("/v1/objects/account/1", 404, "unknown-entity"),
    ("/v1/objects/Account/404", 404, "unknown-object"), ("/v1/objects/Account/a%20b", 404, "unknown-object"),
    ("/v1/objects/Account/%2e%2e", 404, "unknown-object"), ("/v1/objects/Account/", 404, "unknown-object"),
    ("/v1/objects/Account/\(String(repeating: "x", count: 129))", 404, "unknown-object"),
    ("/v1/streams/none", 404, "unknown-stream"), ("/v1/streams/1-0/cells", 404, "unknown-stream"),
    ("/", 404, "not-found"), ("/v1/objects/Account/1/a/b", 404, "not-found"), ("//v1/status", 404, "not-found"),
    ("/v1/objects/../status", 404, "unknown-entity"),
  ].map { Mistake(line: "GET \($0.0)", status: $0.1, code: $0.2) }

  static let heads = [
    Mistake(
      line: "POST /v1/objects/Account/1", status: 405, code: "method-not-allowed",
      answer: ("Allow", "GET, HEAD, PUT, PATCH, DELETE, OPTIONS")),
    Mistake(line: "BREW /v1/transactions", status: 405, code: "method-not-allowed", answer: ("Allow", "POST, OPTIONS")),
    Mistake(
      line: "GET \(balance)", headers: ["Accept: image/png"], status: 406, code: "not-acceptable",
      answer: ("Accept", "application/json, text/event-stream")),
    Mistake(
      line: "GET \(balance)", headers: ["Accept: application/json;q=0, text/event-stream;q=0"], status: 406,
      code: "not-acceptable"),
    Mistake(
      line: "GET /v1/objects/Account", headers: ["Accept: text/event-stream"], status: 406, code: "not-acceptable",
      answer: ("Accept", "application/json")),
    Mistake(line: "GET \(balance)", headers: ["Host: evil.example"], status: 421, code: "misdirected-request"),
    Mistake(
      line: "GET \(balance)", headers: ["Host: 127.0.0.1.evil.example:80"], status: 421, code: "misdirected-request"),
    Mistake(
      line: "PUT \(balance)", headers: ["Host: evil.example", json], body: "1", status: 421, code: "misdirected-request"
    ),
    Mistake(
      line: "GET http://evil.example\(balance)", headers: ["Host: evil.example"], status: 421,
      code: "misdirected-request"),
    Mistake(
      line: "PUT \(balance)", body: "1", status: 415, code: "unsupported-media-type",
      answer: ("Accept", "application/json")),
    Mistake(
      line: "PUT \(balance)", headers: ["Content-Type: text/plain"], body: "1", status: 415,
      code: "unsupported-media-type"),
    Mistake(
      line: "PUT \(balance)", headers: ["Content-Type: application/x-www-form-urlencoded"], body: "1", status: 415,
      code: "unsupported-media-type"),
    Mistake(
      line: "POST /v1/transactions", headers: ["Content-Type: application/jsonp"], body: "{}", status: 415,
      code: "unsupported-media-type"),
    Mistake(
      line: "PATCH /v1/objects/Account/1", headers: ["Content-Type: text/json"], body: "{}", status: 415,
      code: "unsupported-media-type", answer: ("Accept-Patch", "application/json, application/merge-patch+json")),
    Mistake(
      line: "PUT \(balance)", headers: [json, "If-Match: \"zzz-1\""], body: "1", status: 412, code: "stale-revision"),
    Mistake(
      line: "PUT \(balance)", headers: [json, "If-Match: zzz-1"], body: "1", status: 400, code: "malformed-query"),
    Mistake(
      line: "PUT /v1/objects/Account/1", headers: [json, "If-None-Match: *"], body: "{}", status: 412,
      code: "stale-revision"),
    Mistake(
      line: "PUT /v1/objects/Account/1", headers: [json, "If-None-Match: a-1"], body: "{}", status: 400,
      code: "malformed-query"),
    Mistake(
      line: "PUT \(balance)", headers: [json, "Keyway-Writer: two words"], body: "1", status: 400,
      code: "malformed-query"),
    Mistake(
      line: "PUT \(balance)", headers: [json, "Content-Length: 2000"], body: "", status: 413, code: "content-too-large"),
    Mistake(
      line: "PUT \(balance)", headers: [json, "Content-Length: 9223372036854775807"], status: 413,
      code: "content-too-large"),
    Mistake(
      line: "PUT \(balance)", headers: [json, "Transfer-Encoding: chunked"],
      body: "5dc\r\n\(String(repeating: " ", count: 1500))\r\n0\r\n\r\n", status: 413, code: "content-too-large"),
    Mistake(
      line: "PUT \(balance)", headers: [json, "Content-Length: 1", "Transfer-Encoding: chunked"], body: "1",
      status: 400, code: "malformed-request"),
    Mistake(
      line: "PUT \(balance)", headers: [json, "Content-Length: 1", "Content-Length: 2"], body: "1", status: 400,
      code: "malformed-request"),
  ]

  static let bindings = [
    Mistake(
      line: "POST /v1/streams", headers: [json, "Accept: application/json"], body: "{}", status: 422,
      code: "invalid-value"),
    Mistake(
      line: "POST /v1/streams", headers: [json, "Accept: text/event-stream"], body: #"{"cells":[]}"#, status: 422,
      code: "invalid-value"),
    Mistake(
      line: "POST /v1/streams", headers: [json, "Accept: text/event-stream"],
      body: #"{"cells":{"a":{"object":"Account/404"}}}"#, status: 404, code: "unknown-object"),
    Mistake(
      line: "GET \(balance)?options=loud", headers: ["Accept: text/event-stream"], status: 400, code: "malformed-query"),
    Mistake(line: "POST \(balance)", headers: [json], body: "1", status: 422, code: "not-a-collection"),
    Mistake(
      line: "PUT /v1/objects/Account/1/ownerName", headers: [json], body: "1", status: 422, code: "read-only-key"),
    Mistake(line: "DELETE /v1/objects/Account/1", status: 409, code: "delete-denied"),
    Mistake(
      line: "PUT /v1/objects/Account/1", headers: [json], body: #"{"@ref":"Account/2"}"#, status: 422,
      code: "invalid-value"),
  ]

  @Test("Each mistake has its status, type and headers, an explanation, and changes and tells nothing")
  func mistakes() throws {
    let server = try ServerProcess(settings: ["request.bodyBytes": "1024"])
    // The bodies need more room than those of the other mistakes are to have.
    let roomy = try ServerProcess()
    for (server, mistakes) in [(roomy, Self.bodies), (server, Self.targets + Self.heads + Self.bindings)] {
      let stream = try server.client.stream("/v1/objects/Account/1/balance,owner.lastName")
      _ = try stream.next()
      let before = try server.status
      for mistake in mistakes { try check(mistake, on: server) }
      let after = try server.status
      for name in ["revision", "objects", "streams", "cells", "observations"] { #expect(after[name] == before[name]) }
      try server.set("Account/1/balance", "4711")
      #expect(try stream.next().changes[0]["new"].whole == 4711)
    }
  }

  private func check(_ mistake: Mistake, on server: ServerProcess) throws {
    let name = mistake.testDescription
    guard let response = try server.client.raw(mistake.bytes) else {
      Issue.record("no answer to \(name)")
      return
    }
    #expect(response.status == mistake.status, "\(name)\n\(response.text)")
    #expect(response.problem == mistake.code, "\(name)\n\(response.text)")
    #expect(response.json["type"].text == "/v1/problems/\(mistake.code)", "\(name)")
    #expect(response.json["status"].whole == mistake.status, "\(name)")
    if let answer = mistake.answer { #expect(response[answer.name] == answer.value, "\(name)") }
    if mistake.status == 415 { #expect(response.json["detail"].text?.contains("curl --json") == true) }
    if mistake.code == "stale-revision" { #expect(response["ETag"] != nil, "\(name)") }
    #expect(try server.client.send("GET", "/v1/problems/\(mistake.code)").status == 200, "\(name)")
  }

  @Test("What is no HTTP at all gets 400 or nothing, and the server lives on")
  func noHTTP() throws {
    let server = try ServerProcess()
    let texts = [
      "\r\n\r\n", "hello\r\n\r\n", "GET\r\n\r\n", "GET /healthz\r\n\r\n", "GET /healthz HTTP/9.9\r\n\r\n",
      "GET /healthz HTTP/1.1\r\n\r\n", "GET  /healthz  HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
      "GET /healthz HTTP/1.1\r\nHost 127.0.0.1\r\n\r\n", "GET /heal\u{0}thz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
      "PUT /v1/objects/Account/1/balance HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        + "Content-Length: -1\r\n\r\n1",
      "PUT /v1/objects/Account/1/balance HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        + "Transfer-Encoding: chunked\r\n\r\nxyz\r\n1\r\n0\r\n\r\n",
      "\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}",
    ]
    for text in texts {
      let socket = try WireSocket(port: server.port)
      try socket.send(text)
      let answer = try? WireReader(socket).head(before: Deadline(seconds: 0.3))
      #expect(answer.map { (400..<506).contains($0.status) } ?? true, "\(text.debugDescription)")
      #expect(answer?.status != 500, "\(text.debugDescription)")
    }
    #expect(try server.revision == 1)
  }

  @Test("A head that is too large is 431 or 414, and the connection goes")
  func largeHeads() throws {
    let server = try ServerProcess()
    let large = String(repeating: "a", count: 100_000)
    for (text, statuses) in [
      ("GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX: \(large)\r\n\r\n", [431]),
      ("GET /healthz?\(large) HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", [414, 431]),
    ] {
      let socket = try WireSocket(port: server.port)
      try? socket.send(text)
      if let head = try? WireReader(socket).head(before: Deadline()) { #expect(statuses.contains(head.status)) }
    }
    #expect(try server.client.send("GET", "/healthz").status == 200)
  }
}
