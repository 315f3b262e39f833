import KeyValueModel
import TestKit
import Testing

@Suite("Malformed requests")
struct MalformedRequestTests {
  /// A malformed request, and the expected response.
  struct Mistake: Sendable, CustomTestStringConvertible {
    let line: String
    var headers: [String] = []
    var body = ""
    let status: Int
    let code: String
    var answer: (name: String, value: String)?
    /// The index of the operation at which a transaction fails; nil for none.
    var operation: Int?

    var testDescription: String { "\(line) \(headers.joined(separator: " ")) \(body.prefix(40))".prefix(110) + "" }

    /// The bytes of the request. `Host` and `Content-Length` are added if the headers do not have them.
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
    ("/nothing", 404, "not-found"), ("/v1/objects/Account/1/a/b", 404, "not-found"), ("//v1/status", 404, "not-found"),
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
      line: "GET /v1/entities/Account", headers: ["Accept: text/event-stream"], status: 406, code: "not-acceptable",
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
      line: "GET http://127.0.0.1:1\(balance)", headers: ["Host: 127.0.0.1:8080"], status: 421,
      code: "misdirected-request"),
    Mistake(
      line: "GET https://localhost\(balance)", headers: ["Host: localhost:80"], status: 421,
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
      line: "PUT \(balance)", headers: ["Content-Type: ;application/json"], body: "1", status: 415,
      code: "unsupported-media-type"),
    Mistake(
      line: "POST /v1/transactions", headers: ["Content-Type: application/jsonp"], body: "{}", status: 415,
      code: "unsupported-media-type"),
    Mistake(
      line: "PATCH /v1/objects/Account/1", headers: ["Content-Type: text/json"], body: "{}", status: 415,
      code: "unsupported-media-type",
      answer: ("Accept-Patch", "application/json, application/merge-patch+json, application/json-patch+json")),
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
      line: "PUT \(balance)", headers: [json, "Content-Length: 2000"], body: "", status: 413,
      code: "content-too-large"),
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
      line: "GET \(balance)?options=loud", headers: ["Accept: text/event-stream"], status: 400,
      code: "malformed-query"),
    Mistake(
      line: "PUT /v1/objects/Account/1/ownerName", headers: [json], body: "1", status: 422, code: "read-only-key"),
    Mistake(line: "DELETE /v1/objects/Account/1", status: 409, code: "delete-denied"),
    Mistake(
      line: "PUT /v1/objects/Account/1", headers: [json], body: #"{"@ref":"Account/2"}"#, status: 422,
      code: "invalid-value"),
  ]

  private static let employees = "/v1/objects/Department/1/employees"
  private static let labels = "/v1/objects/Note/1/labels"

  private static func mistakes(_ rows: [(String, String, String?, Int, String)]) -> [Mistake] {
    rows.map { Mistake(line: "\($0.0) \($0.1)", headers: [json], body: $0.2 ?? "", status: $0.3, code: $0.4) }
  }

  static let collectionQueries = mistakes([
    ("POST", "\(employees)?index=a", "[]", 400, "malformed-query"),
    ("POST", "\(labels)?index=0&operation=set", "[]", 400, "malformed-query"),
    ("POST", "\(labels)?operation=replace", "[]", 400, "malformed-query"),
    ("DELETE", "\(employees)?index=0&object=Employee/1", nil, 400, "malformed-query"),
    ("DELETE", "\(employees)?object=1", nil, 400, "malformed-query"),
    ("DELETE", "\(labels)?object=Note/1", nil, 400, "malformed-query"),
    ("DELETE", "\(labels)?value=%7B", nil, 400, "malformed-query"),
    ("PUT", "\(labels)?value=1", "[]", 400, "malformed-query"),
    ("POST", "\(employees)?index=7", #""Employee/1""#, 422, "index-out-of-range"),
    ("POST", "\(employees)?index=0,0", #"["Employee/1","Employee/2"]"#, 422, "index-out-of-range"),
    ("PUT", "\(employees)?index=9", #""Employee/1""#, 422, "index-out-of-range"),
    ("DELETE", "\(employees)?index=-1", nil, 422, "index-out-of-range"),
    ("POST", "\(labels)?index=0", #""a""#, 422, "index-out-of-range"),
    ("POST", "\(employees)?index=0", #"["Employee/3","Employee/1"]"#, 422, "invalid-value"),
    ("POST", "\(employees)?index=0,4", #"["Employee/3",{"firstName":"a","lastName":"b"}]"#, 422, "index-out-of-range"),
    ("DELETE", "\(employees)?index=0,2", nil, 422, "index-out-of-range"),
    ("DELETE", "\(employees)?index=1,0,1", nil, 422, "index-out-of-range"),
    ("PUT", "\(employees)?index=0,0", #"["Employee/3","Employee/1"]"#, 422, "index-out-of-range"),
    ("PUT", "\(employees)?index=0,1", #"["Employee/3"]"#, 422, "invalid-value"),
    ("PUT", "\(employees)?index=0", #""Employee/2""#, 422, "invalid-value"),
    ("DELETE", "\(employees)?index=99999999999999999999", nil, 422, "index-out-of-range"),
  ])

  static let values = mistakes([
    ("PUT", "/v1/objects/Account/1/owner", #""Quote/AAPL""#, 422, "wrong-entity"),
    ("PATCH", "/v1/objects/Department/1", #"{"name":"x","head":"Person/7"}"#, 422, "wrong-entity"),
    ("PUT", employees, #"["Employee/1","Quote/IBM"]"#, 422, "wrong-entity"),
    ("POST", "/v1/objects/Portfolio/1/positions", #"[{"shares":1},"Quote/IBM"]"#, 422, "wrong-entity"),
    ("POST", "/v1/objects/Portfolio/1/positions", #"{"shares":1,"quote":"Note/1"}"#, 422, "wrong-entity"),
    ("PUT", "/v1/objects/Account/1/owner", #""Person/404""#, 422, "invalid-value"),
    ("PUT", "/v1/objects/Person/7/firstName", "null", 422, "null-not-allowed"),
    ("DELETE", "/v1/objects/Account/1/owner.lastName", nil, 422, "null-not-allowed"),
    ("PATCH", "/v1/objects/Person/7", #"{"email":null,"lastName":null}"#, 422, "null-not-allowed"),
    ("PUT", "/v1/objects/Person/7", #"{"firstName":"Ada"}"#, 422, "null-not-allowed"),
    ("POST", "/v1/objects/Employee", #"{"lastName":"x"}"#, 422, "null-not-allowed"),
    ("POST", employees, #"{"firstName":"x"}"#, 422, "null-not-allowed"),
    ("PUT", "/v1/objects/Department/1/totalSalary", "1", 422, "read-only-key"),
    ("PATCH", "/v1/objects/Portfolio/1", #"{"name":"x","value":3452.4}"#, 422, "read-only-key"),
    ("PUT", "/v1/objects/Employee/1/department.totalSalary", "1", 422, "read-only-key"),
    ("DELETE", "/v1/objects/Person/7/fullName", nil, 422, "read-only-key"),
    ("POST", "/v1/objects/Person", #"{"firstName":"a","lastName":"b","fullName":"a b"}"#, 422, "read-only-key"),
    ("POST", "\(employees)?index=0", #"{"firstName":"a","lastName":"b","headName":"c"}"#, 422, "read-only-key"),
  ])

  /// Transactions that fail at the last operation, or at the end, after valid operations.
  static let transactions: [Mistake] = {
    let balance = #"{"op":"set","object":"Account/1","keyPath":"balance","value":7}"#
    let name = #"{"op":"set","object":"Person/7","keyPath":"lastName","value":"X"}"#
    let will = #"{"op":"willChange","object":"Account/1","key":"balance"}"#
    let did = #"{"op":"didChange","object":"Account/1","key":"balance"}"#
    let employees = #""object":"Department/1","keyPath":"employees""#
    let rows: [([String], Int, String, Int?)] = [
      ([will, balance], 422, "unbalanced-bracket", nil), ([balance, did, name], 422, "unbalanced-bracket", 1),
      ([will, will, balance, did], 422, "unbalanced-bracket", nil),
      ([will, balance, did, did], 422, "unbalanced-bracket", 3),
      ([will, balance, #"{"op":"didChange","object":"Account/2","key":"balance"}"#], 422, "unbalanced-bracket", 2),
      ([balance, #"{"op":"remove",\#(employees),"index":[0,0]}"#], 422, "index-out-of-range", 1),
      ([balance, #"{"op":"insert",\#(employees),"index":[9],"value":["Employee/3"]}"#], 422, "index-out-of-range", 1),
      ([balance, #"{"op":"insert",\#(employees),"value":["Person/7"]}"#], 422, "wrong-entity", 1),
      ([balance, #"{"op":"create","entity":"Person","value":{"firstName":"x"}}"#], 422, "null-not-allowed", 1),
      ([balance, #"{"op":"patch","object":"Department/1","value":{"totalSalary":0}}"#], 422, "read-only-key", 1),
      ([balance, #"{"op":"require","object":"Account/1","revision":0}"#], 412, "stale-revision", 1),
      (
        (0..<499).flatMap { [#"{"op":"create","object":"Note/m\#($0)","value":{"text":"\#($0)"}}"#, balance] }
          + [name, #"{"op":"set","object":"Person/7","keyPath":"firstName","value":null}"#], 422, "null-not-allowed",
        999
      ),
      (
        (0..<999).map { #"{"op":"create","object":"Position/m\#($0)","value":{"portfolio":"Portfolio/1"}}"# }
          + [#"{"op":"delete","object":"Account/404"}"#], 404, "unknown-object", 999
      ),
    ]
    return rows.map { operations, status, code, index in
      Mistake(
        line: "POST /v1/transactions", headers: [json],
        body: "{\"operations\":[\(operations.joined(separator: ","))]}", status: status, code: code, operation: index)
    }
  }()

  static let collections = mistakes([
    ("POST", balance, "1", 422, "not-a-collection"), ("PUT", "\(balance)?index=0", "1", 422, "not-a-collection"),
    ("DELETE", "\(balance)?index=0", nil, 422, "not-a-collection"),
    ("POST", "\(employees)?operation=union", "[]", 422, "not-a-collection"),
    ("PUT", "\(employees).salary", "1", 422, "not-a-collection"),
    ("GET", "/v1/objects/Department/1/name.@count", nil, 422, "not-a-collection"),
    ("POST", employees, #""Employee/1""#, 422, "invalid-value"),
    ("POST", employees, #""Person/7""#, 422, "wrong-entity"),
    ("POST", employees, #"{"@ref":"Employee/1"}"#, 409, "already-exists"),
    ("POST", labels, "7", 422, "invalid-value"), ("POST", labels, "null", 422, "null-not-allowed"),
    ("PUT", "\(employees).@count", "1", 400, "malformed-key-path"),
    ("GET", "\(employees).@sum", nil, 400, "malformed-key-path"),
    ("GET", "\(employees).@sum.lastName", nil, 422, "invalid-value"),
    ("GET", "/v1/objects/Department/1?expand=name", nil, 400, "malformed-query"),
    ("GET", "\(employees).department.employees.salary", nil, 429, "too-many-objects"),
    (
      "POST", "/v1/transactions", #"{"operations":[{"op":"insert","object":"Note/1","keyPath":"labels"}]}"#, 422,
      "invalid-value"
    ),
  ])

  static let patches: [Mistake] = [
    ("[", 400, "malformed-json"), ("{}", 400, "malformed-json"), (#"[{"op":"x","path":""}]"#, 400, "malformed-json"),
    (#"[{"op":"remove","path":"/nope"}]"#, 422, "invalid-value"),
    (#"[{"op":"replace","path":"/ownerName","value":"x"}]"#, 422, "read-only-key"),
    (#"[{"op":"test","path":"/balance","value":-1}]"#, 409, "patch-test-failed"),
    (
      "[\(repeatElement(#"{"op":"test","path":"","value":0}"#, count: 8).joined(separator: ","))]", 429,
      "too-many-operations"
    ),
  ].map {
    Mistake(
      line: "PATCH /v1/objects/Account/1", headers: ["Content-Type: application/json-patch+json"], body: $0.0,
      status: $0.1, code: $0.2)
  }

  static let streams: [Mistake] = ["\(employees).lastName", "\(employees).department.name,name"].map {
    Mistake(line: "GET \($0)", headers: ["Accept: text/event-stream"], status: 422, code: "unobservable-key-path")
  }

  @Test("Each mistake has its status, type and headers, an explanation, and changes and tells nothing")
  func mistakes() throws {
    let server = try ServerProcess(settings: [
      "request.bodyBytes": "1024", "patch.operations": "7", "answer.objects": "1",
    ])
    // The bodies need a higher limit than those of the other mistakes.
    let roomy = try ServerProcess()
    let others = Self.targets + Self.heads + Self.bindings
    let ours = Self.collectionQueries + Self.collections + Self.values + Self.patches + Self.streams
    for (server, mistakes) in [(roomy, Self.bodies + Self.transactions), (server, others + ours)] {
      let stream = try server.client.stream("/v1/objects/Account/1/balance,owner.lastName")
      let others = try ["Department/1/employees,totalSalary", "Portfolio/1/positions,value", "Person/7/fullName"].map {
        try server.client.stream("/v1/objects/\($0)?options=none")
      }
      _ = try stream.next()
      let before = try server.status
      for mistake in mistakes { try check(mistake, on: server) }
      let after = try server.status
      for name in ["revision", "objects", "streams", "cells", "observations"] { #expect(after[name] == before[name]) }
      try server.set("Account/1/balance", "4711")
      #expect(try stream.next().changes[0]["new"].whole == 4711)
      try server.set("Employee/1/salary", "1")
      try server.set("Quote/AAPL/price", "1")
      try server.set("Person/7/lastName", #""Byron""#)
      let revision = try server.revision
      #expect(try others.map { try $0.next().json["revision"].whole } == [revision - 2, revision - 1, revision])
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
    if let operation = mistake.operation {
      #expect(response.json["operation"].whole == operation, "\(name)\n\(response.text)")
    }
    if let answer = mistake.answer { #expect(response[answer.name] == answer.value, "\(name)") }
    if mistake.status == 415 { #expect(response.json["detail"].text?.contains("curl --json") == true) }
    if mistake.code == "stale-revision", mistake.operation == nil { #expect(response["ETag"] != nil, "\(name)") }
    #expect(try server.client.send("GET", "/v1/problems/\(mistake.code)").status == 200, "\(name)")
  }

  @Test("Bytes that are not HTTP get 400 or nothing, and the server keeps running")
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
