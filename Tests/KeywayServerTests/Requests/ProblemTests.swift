import Foundation
import KeyValueModel
import TestKit
import Testing

@Suite("Subjects of problems")
struct ProblemTests {
  @Test("An object that gets its id from the server and is refused is not named, since it never was")
  func newObjects() throws {
    let server = try TestServer()
    let operation = #"{"operations":[{"op":"create","entity":"Account","value":{"visits":"x"}}]}"#
    let (create, transaction) = ("/v1/objects/Account", "/v1/transactions")
    for (target, body, key) in [
      (create, #"{"visits":"x"}"#, "visits"), (create, #"{"nope":1}"#, "nope"),
      (create, #"{"ownerName":"x"}"#, "ownerName"),
      (create, #"{"owner":"Person/404"}"#, "owner"), ("/v1/objects/Badge", "{}", "bearer"),
      (create, #"{"@ref":"Account/7"}"#, "@ref"), (transaction, operation, "visits"),
    ] {
      let response = try server.client.send("POST", target, body: body)
      #expect(response.status == 422 || response.status == 404, "\(target) \(body)")
      #expect(!response.json.has("object"), "\(response.text)")
      #expect(response.json["keyPath"].text == key, "\(response.text)")
      #expect(response.text.firstMatch(of: /[0-9a-f]{8}-[0-9a-f]{4}-7/) == nil, "\(response.text)")
    }
    let numbered = try server.client.send("POST", transaction, body: operation)
    #expect(numbered.json["operation"].whole == 0)
  }

  @Test("An object that a client names is named by the problem, also where it is not there")
  func namedObjects() throws {
    let server = try TestServer()
    let put = try server.client.send("PUT", "/v1/objects/Account/9", body: #"{"visits":"x"}"#)
    #expect(put.json["object"].text == "Account/9")
    let created = try server.client.send(
      "POST", "/v1/transactions",
      body: #"{"operations":[{"op":"create","object":"Account/9","value":{"visits":"x"}}]}"#)
    #expect(created.json["object"].text == "Account/9")
  }

  @Test(
    "A problem quotes a little of what a client sent, however long it is",
    arguments: [
      ("PUT", "/v1/objects/Account/1/balance", "\"X\""), ("POST", "/v1/objects/Account", "{\"X\":1}"),
      ("POST", "/v1/objects/Person", "{\"firstName\":\"X\",\"lastName\":\"a\"}"),
      ("PUT", "/v1/objects/Account/1", "{\"owner\":\"X\"}"), ("PUT", "/v1/objects/Account/1", "{\"X\":1,\"X\":2}"),
      ("POST", "/v1/transactions", "{\"operations\":[{\"op\":\"X\"}]}"),
      (
        "POST", "/v1/transactions", "{\"operations\":[{\"op\":\"set\",\"object\":\"X\",\"keyPath\":\"a\",\"value\":1}]}"
      ),
      (
        "POST", "/v1/transactions",
        "{\"operations\":[{\"op\":\"set\",\"object\":\"Account/1\",\"keyPath\":\"X\",\"value\":1}]}"
      ),
      ("PUT", "/v1/objects/Employee/1/grade", "\"X\""), ("POST", "/v1/streams", "{\"cells\":{\"X\":{}}}"),
    ])
  func long(_ method: String, _ target: String, _ body: String) throws {
    let server = try TestServer()
    for piece in ["x", "e\u{301}\u{301}", "'"] {
      let text = String(repeating: piece, count: 300_000)
      let response = try server.client.send(
        method, target, body: body.replacingOccurrences(of: "X", with: text))
      #expect((400..<500).contains(response.status), "\(method) \(target): \(response.status)")
      #expect(response.body.count < 4_000, "\(method) \(target): \(response.body.count) bytes")
      #expect(response.json["detail"].text?.isEmpty == false)
    }
  }

  @Test("An object that is made in place and refused is not named")
  func membersMadeInPlace() throws {
    let server = try CollectionFixture.server()
    let response = try server.client.send("POST", "/v1/objects/Department/1/employees", body: #"{"salary":"x"}"#)
    #expect(response.status == 422)
    #expect(response.text.firstMatch(of: /[0-9a-f]{8}-[0-9a-f]{4}-7/) == nil, "\(response.text)")
  }

  @Test(
    "The path is checked before the body",
    arguments: [
      ("POST", "/v1/objects/Nope", "unknown-entity"), ("PUT", "/v1/objects/Nope/1", "unknown-entity"),
      ("PATCH", "/v1/objects/Nope/1", "unknown-entity"), ("PATCH", "/v1/objects/Account/404", "unknown-object"),
      ("PUT", "/v1/objects/Nope/1/balance", "unknown-entity"),
      ("PUT", "/v1/objects/Account/404/balance", "unknown-object"),
      ("PUT", "/v1/objects/Account/1/nope", "undefined-key"),
      ("PUT", "/v1/objects/Account/1/owner.nope", "undefined-key"),
      ("POST", "/v1/objects/Account/404/balance", "unknown-object"),
      ("POST", "/v1/objects/Account/1/nope", "undefined-key"),
      ("PUT", "/v1/streams/x-1/cells", "unknown-stream"), ("PUT", "/v1/streams/x-1/cells/a", "unknown-stream"),
      ("PATCH", "/v1/streams/x-1/cells/a", "unknown-stream"),
    ])
  func pathFirst(_ method: String, _ target: String, _ problem: String) throws {
    let server = try TestServer()
    for body in ["{", "7", "[]", #"{"object":7}"#, #"{"cells":7}"#] {
      // A key path takes any JSON value, and even then the model refuses a wrong path.
      let response = try server.client.send(method, target, body: body)
      #expect(response.problem == problem, "\(body): \(response.text)")
      #expect(response.status == 404)
    }
    let typed = try server.client.send(method, target, ["Content-Type": "text/plain"], body: "{}")
    #expect(typed.problem == problem, "\(typed.text)")
  }

  @Test("An unknown cell is told before its body is looked at")
  func unknownCell() throws {
    let server = try TestServer()
    let stream = try server.client.stream("/v1/streams")
    let name = try #require(stream.next().json["stream"].text)
    let response = try server.client.send("PATCH", "/v1/streams/\(name)/cells/none", body: "{")
    #expect(response.problem == "unknown-cell")
  }

  @Test(
    "Every JSON response ends with one newline, which its length counts",
    arguments: [
      "/healthz", "/readyz", "/v1/status", "/v1/entities", "/v1/entities/Note", "/v1/problems/not-found", "/v1/objects",
      "/v1/objects/Note", "/v1/objects/Note/1", "/v1/objects/Note/1?keys=text", "/v1/objects/Note/1/text",
      "/v1/objects/Note/1/text,tags", "/v1/streams", "/nowhere", "/v1/objects/Note/404", "/v1/journal?since=x-1",
    ])
  func newline(_ target: String) throws {
    let response = try TestServer().client.send("GET", target)
    #expect(response.text.hasSuffix("\n") && !response.text.hasSuffix("\n\n"), "\(response.text)")
    #expect(response["Content-Length"] == "\(response.body.count)")
    #expect(!response.json.isNull)
  }

  @Test("So does what a write answers with, also where it is given again; an empty body stays empty")
  func newlineOfWrites() throws {
    let server = try TestServer()
    let header = ["Idempotency-Key": "k"]
    let responses = [
      try server.client.must("POST", "/v1/objects/Note", header, body: "{}"),
      try server.client.must("POST", "/v1/objects/Note", header, body: "{}"),
      try server.client.must("PATCH", "/v1/objects/Note/1", body: "{}"),
      try server.client.must("PUT", "/v1/objects/Note/1/text", body: #""x""#),
      try server.commit(#"{"op":"delete","object":"Account/2"}"#),
    ]
    for response in responses { #expect(response.jsonText?.hasSuffix("\n") == false, "\(response.text)") }
    #expect(responses[0].text == responses[1].text && responses[1]["Idempotency-Replayed"] == "true")
    #expect(try server.client.must("DELETE", "/v1/objects/Note/1/text").body.isEmpty)
    let lines = try server.client.must("GET", "/v1/journal").text
    #expect(lines.hasSuffix("}\n") && !lines.contains("\n\n"))
  }
}
