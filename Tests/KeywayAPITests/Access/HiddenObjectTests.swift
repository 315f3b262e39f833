import KeyValueModel
import LoopbackKit
import Testing

/// What may not be read is not there: each request has the answer that it would have if the object had never been.
@Suite("Objects that may not be read") struct HiddenObjectTests {
  private typealias Request = (method: String, target: String, headers: [String: String], body: String?)

  /// Ann may not read `Account/2`, and there is no `Account/9`: `Account/N` stands for either.
  private static let requests: [Request] = [
    ("GET", "Account/N", [:], nil), ("GET", "Account/N/balance", [:], nil), ("GET", "Account/N/nothing", [:], nil),
    ("GET", "Account/N", ["Accept": "text/event-stream"], nil), ("GET", "Account/N", ["If-None-Match": "*"], nil),
    ("PATCH", "Account/N", [:], "{}"), ("PATCH", "Account/N", [:], #"{"nothing":1}"#),
    ("PATCH", "Account/N", [:], #"{"code":"x"}"#), ("PATCH", "Account/N", ["If-Match": #""x""#], "{}"),
    ("PATCH", "Account/N", ["If-Match": "*"], "{}"), ("PATCH", "Account/N", ["If-None-Match": "*"], "{}"),
    ("PATCH", "Account/N", ["Keyway-Lifetime": "60"], "{}"), ("DELETE", "Account/N", [:], nil),
    ("DELETE", "Account/N", ["If-Match": #""x""#], nil), ("PUT", "Account/N/balance", [:], "1"),
    ("PUT", "Account/N/balance", ["If-Match": #""x""#], "1"), ("PUT", "Account/N/code", [:], #""x""#),
    ("PUT", "Account/N/doubled", [:], "1"), ("PUT", "Account/N/owner.name", [:], #""x""#),
    ("DELETE", "Account/N/balance", [:], nil), ("PUT", "Account/N", [:], "{}"),
    ("PUT", "Account/N", ["If-Match": "*"], "{}"), ("PUT", "Account/N", ["If-None-Match": "*"], "{}"),
    ("PUT", "Account/N", ["If-Match": #""x""#], #"{"balance":"x"}"#),
    ("PUT", "News/2", [:], #"{"by":"ann","about":"Account/N"}"#), ("PUT", "News/1/about", [:], #""Account/N""#),
    ("PATCH", "News/1", [:], #"{"text":5,"about":"Account/N"}"#),
    ("PATCH", "Customer/1", [:], #"{"accounts":["Account/N"]}"#),
    ("POST", "Customer/1/accounts", [:], #"["Account/N"]"#),
    ("POST", "Customer/1/accounts?operation=minus", [:], #"["Account/N"]"#),
    ("POST", "Customer/1/accounts", [:], #"{"@ref":"Account/N"}"#),
  ]

  /// One after the other in a transaction, where the mistake that comes first must not depend on what is hidden.
  private static let operations = [
    #"{"op":"require","object":"Account/N","revision":2}"#, #"{"op":"delete","object":"Account/N"}"#,
    #"{"op":"set","object":"Account/N","keyPath":"balance","value":1}"#,
    #"{"op":"patch","object":"Account/N","value":{"balance":"x"}}"#,
    #"{"op":"create","object":"Account/N","value":{}}"#,
    #"{"op":"willChange","object":"Account/N","key":"balance"}"#,
    #"{"op":"didChange","object":"Account/N","key":"balance"}"#,
    #"{"op":"set","object":"Customer/1","keyPath":"name","value":5}"#,
    #"{"op":"set","object":"Customer/1","keyPath":"name","value":"Ann"}"#,
    #"{"op":"didChange","object":"Customer/1","key":"name"}"#,
    #"{"op":"set","object":"Customer/1","keyPath":"accounts","value":["Account/N"]}"#,
    #"{"op":"create","object":"News/7","value":{"by":"ann","about":"Account/N"}}"#,
    #"{"op":"create","object":"News/7","value":{"by":"bob","about":"Account/N"}}"#,
  ]

  private static func answer(_ number: Int, _ request: Request, _ bank: GuardedServer, _ identity: [String: String])
    throws -> (status: Int, text: String)
  {
    let name = "Account/\(number)"
    let headers = identity.merging(request.headers) { $1 }.merging(["X-Request-Id": "r"]) { $1 }
    let response = try bank.client.send(
      request.method, "/v1/" + request.target.replacing("Account/N", with: name), headers,
      body: request.body?.replacing("Account/N", with: name))
    return (response.status, "\(response.status) \(response.text.replacing(name, with: "Account/N"))")
  }

  private static func compare(_ request: Request, _ bank: GuardedServer) throws {
    for identity in [bank.ann, [:]] {
      let hidden = try answer(2, request, bank, identity)
      let absent = try answer(9, request, bank, identity)
      #expect(hidden.status >= 400, "\(request)")
      #expect(hidden == absent, "\(request)")
    }
  }

  @Test("A request is answered as if the object had never been")
  func requests() throws {
    let bank = try GuardedServer.bank()
    try bank.client.must("PUT", "/v1/objects/News/1/about", bank.admin, body: "null")
    for request in Self.requests {
      try Self.compare((request.method, "objects/\(request.target)", request.headers, request.body), bank)
    }
  }

  @Test("A transaction is refused by the same operation, for the same reason, as if the object had never been")
  func transactions() throws {
    let bank = try GuardedServer.bank()
    let pairs = Self.operations.flatMap { first in Self.operations.filter { $0 != first }.map { [first, $0] } }
    for operations in Self.operations.map({ [$0] }) + pairs where operations.contains(where: { $0.contains("/N") }) {
      let body = "{\"operations\":[\(operations.joined(separator: ","))]}"
      try Self.compare(("POST", "transactions", [:], body), bank)
    }
  }

  @Test("A member that may not be read stays where it is, and where a list that has it is set again")
  func keptMembers() throws {
    let bank = try GuardedServer.bank()
    try bank.client.must("PUT", "/v1/objects/News/1/about", bank.ann, body: #""Account/2""#)
    try bank.client.must("PATCH", "/v1/objects/News/1", bank.ann, body: #"{"about":"Account/2","text":"again"}"#)
    #expect(try bank.json("News/1/about", bank.ann) == .string("Account/2"))
    let moved =
      #"{"operations":[{"op":"set","object":"News/1","keyPath":"about","value":null},"#
      + #"{"op":"set","object":"News/1","keyPath":"about","value":"Account/2"}]}"#
    try bank.client.must("POST", "/v1/transactions", bank.ann, body: moved)
    #expect(try bank.json("News/1/about", bank.ann) == .string("Account/2"))
  }
}
