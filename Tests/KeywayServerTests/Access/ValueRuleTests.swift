import TestKit
import Testing

@Suite("Values, and what is refused")
struct ValueRuleTests {
  struct Refusal: Sendable, CustomTestStringConvertible {
    let request: String
    let body: String?
    let status: Int
    let code: String

    init(_ request: String, _ body: String?, _ status: Int, _ code: String) {
      (self.request, self.body, self.status, self.code) = (request, body, status, code)
    }

    var testDescription: String { "\(request) \(body ?? "") → \(status) \(code)" }
  }

  static let refusals = [
    Refusal("PUT Account/1/balance", #""much""#, 422, "invalid-value"),
    Refusal("PUT Account/1/balance", "true", 422, "invalid-value"),
    Refusal("PUT Account/1/balance", "1e400", 422, "invalid-value"),
    Refusal("PUT Account/1/visits", "-1e400", 422, "invalid-value"),
    Refusal("PUT Account/1", #"{"visits":1e400}"#, 422, "invalid-value"),
    Refusal("PUT Account/1/visits", "1.5", 422, "invalid-value"),
    Refusal("PUT Account/1/visits", "9223372036854775808", 422, "invalid-value"),
    Refusal("PUT Account/1/isOpen", "1", 422, "invalid-value"),
    Refusal("PUT Person/1/firstName", #""ninechars""#, 422, "invalid-value"),
    Refusal("PUT Person/1/firstName", "null", 422, "null-not-allowed"),
    Refusal("DELETE Person/1/firstName", nil, 422, "null-not-allowed"),
    Refusal("PUT Person/1/lastName", #""""#, 422, "invalid-value"),
    Refusal("PUT Person/1/email", #""no-at""#, 422, "invalid-value"),
    Refusal("PUT Person/1/born", #""1815-13-10""#, 422, "invalid-value"),
    Refusal("PUT Person/1/born", #""10.12.1815""#, 422, "invalid-value"),
    Refusal("PUT Employee/1/salary", "-1", 422, "invalid-value"),
    Refusal("PUT Employee/1/salary", "1000.5", 422, "invalid-value"),
    Refusal("PUT Employee/1/grade", #""c""#, 422, "invalid-value"),
    Refusal("PUT Account/1/ownerName", #""X""#, 422, "read-only-key"),
    Refusal("DELETE Account/1/ownerName", nil, 422, "read-only-key"),
    Refusal("PUT Account/1", #"{"ownerName":"X"}"#, 422, "read-only-key"),
    Refusal("PATCH Account/1", #"{"ownerName":"X"}"#, 422, "read-only-key"),
    Refusal("PUT Account/1", #"{"nope":1}"#, 422, "invalid-value"),
    Refusal("PUT Account/1/nope", "1", 404, "undefined-key"),
    Refusal("PUT Account/1/balance.x", "1", 404, "undefined-key"),
    Refusal("PUT Note/1/tags.a", "1", 404, "undefined-key"),
    Refusal("PUT Account/1/owner", #""Account/2""#, 422, "wrong-entity"),
    Refusal("PUT Account/1/owner", #""Planet/2""#, 422, "wrong-entity"),
    Refusal("PUT Account/1/owner", #""Person/404""#, 422, "invalid-value"),
    Refusal("PUT Account/1/owner", #""Person""#, 422, "invalid-value"),
    Refusal("PUT Account/1/owner", "7", 422, "invalid-value"),
    Refusal("PUT Account/2/owner.lastName", #""X""#, 409, "null-in-key-path"),
    Refusal("PUT Account/1/owner.spouse.lastName", #""X""#, 409, "null-in-key-path"),
    Refusal("PUT Account/404/balance", "1", 404, "unknown-object"),
    Refusal("PATCH Account/404", "{}", 404, "unknown-object"),
    Refusal("DELETE Account/404", nil, 404, "unknown-object"),
    Refusal("PUT Planet/1", "{}", 404, "unknown-entity"),
    Refusal("POST Planet", "{}", 404, "unknown-entity"),
    Refusal("PUT Account/a%20b", "{}", 422, "invalid-value"),
    Refusal("PUT Account/..", "{}", 422, "invalid-value"),
    Refusal("GET Account/a%2Fb", nil, 404, "unknown-object"),
    Refusal("PUT Account/1", "[]", 422, "invalid-value"),
    Refusal("PATCH Account/1", "3", 422, "invalid-value"),
    Refusal("PUT Account/1/balance", #"{"a":1,"a":2}"#, 400, "malformed-json"),
    Refusal("PUT Account/1", #"{"balance":1,"balance":2}"#, 400, "malformed-json"),
    Refusal("PUT Account/1/balance", "", 400, "malformed-json"),
    Refusal("PUT Account/1/balance", "1 2", 400, "malformed-json"),
    Refusal("PUT Account/1/balance", "NaN", 400, "malformed-json"),
    Refusal("GET Account/1/balance.", nil, 400, "malformed-key-path"),
    Refusal("GET Account/1/.balance", nil, 400, "malformed-key-path"),
    Refusal("GET Account/1/owner..lastName", nil, 400, "malformed-key-path"),
    Refusal("GET Account/1/balance,", nil, 400, "malformed-key-path"),
    Refusal("GET Account/1/owner.@count", nil, 422, "not-a-collection"),
    Refusal("GET Account/1/@nope.balance", nil, 400, "malformed-key-path"),
    Refusal("GET Account/1/@sum", nil, 400, "malformed-key-path"),
    Refusal("GET Account/1/@count.x", nil, 400, "malformed-key-path"),
    Refusal("PUT Account/1/@sum.balance", "1", 400, "malformed-key-path"),
    Refusal("POST Account/1/owner", #""Person/2""#, 422, "not-a-collection"),
    Refusal("PUT Account/1/owner?index=1", #""Person/2""#, 422, "not-a-collection"),
    Refusal("DELETE Account/1/owner?object=Person/1", nil, 422, "not-a-collection"),
    Refusal("GET Account/1?color=red", nil, 400, "malformed-query"),
    Refusal("GET Account/1?keys=balance&keys=owner", nil, 400, "malformed-query"),
    Refusal("GET Account?limit=-1", nil, 400, "malformed-query"),
    Refusal("GET Account?page=x", nil, 400, "malformed-query"),
    Refusal("PUT Badge/9", "{}", 422, "null-not-allowed"),
    Refusal("PUT Account/1", #"{"balance":5,"owner":"Person/404"}"#, 422, "invalid-value"),
  ]

  @Test("Each mistake has its problem, changes nothing, notifies no observer and uses no revision", arguments: refusals)
  func refused(_ refusal: Refusal) throws {
    let server = try TestServer()
    let stream = try server.subscribed("Account/1/balance,owner,ownerName,owner.lastName")
    let before = try server.revision
    let parts = refusal.request.split(separator: " ").map(String.init)
    let response = try server.client.send(parts[0], "/v1/objects/" + parts[1], body: refusal.body)
    #expect(response.status == refusal.status, "\(response.text)")
    #expect(response.problem == refusal.code)
    #expect(response.json["status"].whole == refusal.status)
    #expect(response.json["detail"].text?.isEmpty == false)
    #expect(try server.revision == before)
    // No event was sent: the next one is that of the next commit.
    try server.set("Account/1/balance", "-1")
    #expect(try stream.next().json["revision"].whole == before + 1)
  }

  @Test("A problem names the object, the key path and the operation that it is about")
  func place() throws {
    let server = try TestServer()
    let response = try server.client.send("PUT", "/v1/objects/Account/1/ownerName", body: "1")
    #expect(response.json["object"].text == "Account/1")
    #expect(response.json["keyPath"].text == "ownerName")
    let transaction = try server.client.send(
      "POST", "/v1/transactions",
      body: #"{"operations":[{"op":"set","object":"Account/1","keyPath":"nope","value":1}]}"#)
    #expect(transaction.json["operation"].whole == 0)
  }

  @Test("Numbers come back as they were: 64-bit integers exactly, doubles as the same double")
  func numbers() throws {
    let server = try TestServer()
    for text in ["9223372036854775807", "-9223372036854775808", "0"] {
      try server.set("Account/1/visits", text)
      #expect(try server.client.send("GET", "/v1/objects/Account/1/visits").jsonText == text)
    }
    for text in ["0.1", "1e300", "5e-324", "0.30000000000000004"] {
      try server.set("Account/1/balance", text)
      let read = try server.client.send("GET", "/v1/objects/Account/1/balance").jsonText
      #expect(read.flatMap(Double.init) == Double(text))
    }
  }

  @Test(
    "Text comes back as it was",
    arguments: [#""""#, #""\u0000\n\t\"\\""#, #""ü 漢 🎹""#, #""e\u0301""#, #""\ud83c\udfb9""#, #""</script>\u2028""#])
  func text(_ json: String) throws {
    let server = try TestServer()
    try server.set("Note/1/text", json)
    let stream = try server.client.stream("/v1/objects/Note/1/text")
    let expected = try server.client.json("/v1/objects/Note/1")["text"]
    #expect(try stream.next().changes.first?["new"] == expected)
    try server.set("Note/1/text", server.client.send("GET", "/v1/objects/Note/1/text").text)
    #expect(try stream.next().changes.first?["new"] == expected)
  }
}
