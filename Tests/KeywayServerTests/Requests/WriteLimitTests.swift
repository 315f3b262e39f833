import HTTPServer
import KeyValueModel
import KeywayServer
import Store
import TestKit
import Testing

@Suite("Limits of what a write makes")
struct WriteLimitTests {
  private static let patchType = ["Content-Type": "application/json-patch+json"]

  /// Returns a patch with the same operation `count` times.
  private static func patch(_ operation: String, _ count: Int) -> String {
    "[\(Array(repeating: operation, count: count).joined(separator: ","))]"
  }

  @Test("A JSON Patch that copies until the object is too large is 413 with the object, and nothing is changed")
  func copies() throws {
    let server = try TestServer { $0.store.transaction.objectBytes = 100_000 }
    try server.set("Note/1/text", "\"\(String(repeating: "x", count: 20_000))\"")
    let before = try server.client.json("/v1/objects/Note/1")
    let revision = try server.revision
    let body = Self.patch(#"{"op":"copy","from":"/text","path":"/tags/b/-"}"#, 600)
    let response = try server.client.send("PATCH", "/v1/objects/Note/1", Self.patchType, body: body)
    #expect(response.status == 413)
    #expect(response.json["type"].text == "/v1/problems/content-too-large")
    #expect(response.json["object"].text == "Note/1")
    #expect(try server.client.json("/v1/objects/Note/1") == before)
    #expect(try server.revision == revision)
  }

  @Test("A transaction that writes too much is 413 with the operation")
  func transactionBytes() throws {
    let server = try TestServer { $0.store.transaction.bytes = 65_536 }
    let text = String(repeating: "y", count: 30_000)
    let operations = (1...4).map { _ in #"{"op":"set","object":"Note/1","keyPath":"text","value":"\#(text)"}"# }
    let response = try server.client.send(
      "POST", "/v1/transactions", body: "{\"operations\":[\(operations.joined(separator: ","))]}")
    #expect(response.status == 413)
    #expect(response.json["operation"].whole == 2)
  }

  @Test("A patch that shifts a long array again and again is 429, whose beginning was not applied")
  func steps() throws {
    let server = try TestServer { $0.store.transaction.steps = 20_000 }
    let elements = "[\(Array(repeating: "1", count: 20_000).joined(separator: ","))]"
    try server.set("Note/1/tags", elements)
    let front = Self.patch(#"{"op":"add","path":"/tags/0","value":2}"#, 100)
    let refused = try server.client.send("PATCH", "/v1/objects/Note/1", Self.patchType, body: front)
    #expect(refused.status == 429)
    #expect(refused.json["type"].text == "/v1/problems/too-many-steps")
    #expect(refused["Retry-After"] != nil)
    #expect(try server.client.send("GET", "/v1/objects/Note/1/tags").text == elements + "\n")
    let end = Self.patch(#"{"op":"add","path":"/tags/-","value":2}"#, 100)
    let taken = try server.client.send("PATCH", "/v1/objects/Note/1", Self.patchType, body: end)
    #expect(taken.status == 200)
    #expect(taken.json["tags"].elements?.count == 20_100)
  }

  @Test("A body that becomes much memory is refused to the client whose share it is over, and a text as long is not")
  func memoryOfBodies() throws {
    let server = try TestServer { $0.memory.clientBytes = 600_000 }
    let lists = "[\(Array(repeating: "[]", count: 60_000).joined(separator: ","))]"
    let refused = try server.client.send("PUT", "/v1/objects/Note/1/tags", body: lists)
    #expect(refused.status == 503)
    #expect(refused.json["type"].text == "/v1/problems/overloaded")
    let text = "\"\(String(repeating: "z", count: lists.utf8.count - 2))\""
    #expect(try server.client.send("PUT", "/v1/objects/Note/1/tags", body: text).status == 200)
    let metrics = try server.client.send("GET", "/metrics").text
    #expect(metrics.contains(#"keyway_memory_refusals_total{reason="client"} 1"#))
    #expect(metrics.contains("keyway_memory_limit_bytes"))
    #expect(try server.client.json("/v1/status")["memory"]["clientLimit"].whole == 600_000)
  }

  @Test("The answer about a large object shows the object as its write left it")
  func largeAnswers() throws {
    let server = try TestServer()
    let long = String(repeating: "w", count: 50_000)
    for number in 1...20 {
      let response = try server.client.send("PUT", "/v1/objects/Note/1/text", body: "\"\(number)\(long)\"")
      #expect(response.status == 200)
      #expect(response.text == "\"\(number)\(long)\"\n")
      #expect(response["ETag"] == "\"\(server.epoch)-\(try server.revision)\"")
    }
  }
}
