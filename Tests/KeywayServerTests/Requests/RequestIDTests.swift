import HTTPServer
import KeyValueModel
import TestKit
import Testing

@testable import KeywayServer

@Suite("Ids of requests")
struct RequestIDTests {
  @Test(
    "A problem has the id of its request as its last member, wherever it is made",
    arguments: [
      ("GET", "/nowhere", 404), ("GET", "/v1/objects/Note/404", 404), ("POST", "/healthz", 405),
      ("PUT", "/v1/objects/Account/1/visits", 422), ("GET", "/v1/objects/Note?filter=(", 400),
      ("GET", "/v1/objects/Account/1/a..b", 400), ("PUT", "/v1/objects/Note/1?big", 413),
    ])
  func problems(_ method: String, _ target: String, _ status: Int) throws {
    let server = try TestServer { $0.server.bodyBytes = 300 }
    let body = method == "GET" ? nil : "\"\(String(repeating: "x", count: target.hasSuffix("big") ? 400 : 1))\""
    let id = #"a"b\c/d"#
    let response = try server.client.send(method, target, ["X-Request-Id": id], body: body)
    #expect(response.status == status, "\(response.text)")
    #expect(response["X-Request-Id"] == id)
    #expect(response.json["requestId"].text == id, "\(response.text)")
    #expect(response.text.hasSuffix(#","requestId":"a\"b\\c/d"}"# + "\n"), "\(response.text)")
    let without = try server.client.send(method, target, body: body)
    #expect(without.json["requestId"].text == without["X-Request-Id"])
    #expect(without.json["requestId"].text?.isEmpty == false)
  }

  @Test("An answer that is no problem does not name its request in the body")
  func answers() throws {
    let server = try TestServer()
    for target in ["/v1/objects/Note/1", "/healthz", "/v1/problems/not-found", "/v1/entities"] {
      let response = try server.client.send("GET", target, ["X-Request-Id": "mine"])
      #expect(response["X-Request-Id"] == "mine" && !response.text.contains("mine"))
    }
  }

  @Test("A response that is given again to a retry names the retry")
  func retries() throws {
    let server = try TestServer()
    let send = { (id: String) in
      try server.client.send(
        "POST", "/v1/transactions", ["Idempotency-Key": "k", "X-Request-Id": id],
        body: #"{"operations":[{"op":"set","object":"Account/1","keyPath":"visits","value":"x"}]}"#)
    }
    let answers = [try send("first"), try send("second")]
    #expect(answers.map { $0.json["requestId"].text } == ["first", "second"])
    #expect(answers.map { $0["X-Request-Id"] } == ["first", "second"])
  }
}

@Suite("The text of a cursor") struct CursorTests {
  @Test(
    "It is the epoch and the revision, in quotation marks where it is an entity tag",
    arguments: [
      ("k3f9ab", 0, "k3f9ab-0"), ("k3f9ab", 12_345_678, "k3f9ab-12345678"), ("e", .max, "e-18446744073709551615"),
      ("an-epoch-longer-than-most", 7, "an-epoch-longer-than-most-7"), ("", 1, "-1"), ("é", 1, "é-1"),
    ] as [(String, Revision, String)])
  func text(_ epoch: String, _ revision: Revision, _ text: String) {
    let cursor = Cursor(epoch: epoch, revision: revision)
    #expect(cursor.description == text)
    #expect(cursor.entityTag == "\"" + text + "\"")
  }

  @Test("It is read back", arguments: [0, 1, 9, 10, 1_000_000, .max] as [Revision])
  func readBack(_ revision: Revision) {
    let cursor = Cursor(epoch: "k3-9", revision: revision)
    #expect(Cursor(cursor.description) == cursor)
  }
}
