import KeyValueModel
import KeywayServer
import TestKit
import Testing

@Suite("JSON Patch")
struct JSONPatchRequestTests {
  private static let type = ["Content-Type": "application/json-patch+json"]
  private let server: TestServer
  private let department = "/v1/objects/Department/1"

  init() throws { server = try CollectionFixture.server() }

  private func patch(_ body: String, _ headers: [String: String] = [:]) throws -> WireResponse {
    try server.client.send("PATCH", department, Self.type.merging(headers) { $1 }, body: body)
  }

  @Test("Every operation works on the object as GET gives it, and answers with the object as written")
  func operations() throws {
    let response = try patch(
      """
      [{"op":"test","path":"/@ref","value":"Department/1"},
       {"op":"test","path":"/employees/0","value":"Employee/1"},
       {"op":"replace","path":"/name","value":"N"},
       {"op":"add","path":"/marks/1","value":15},
       {"op":"remove","path":"/employees/0"},
       {"op":"add","path":"/employees/-","value":"Employee/4"},
       {"op":"add","path":"/info","value":{"a":[1]}},
       {"op":"copy","from":"/info/a","path":"/info/b~1c"},
       {"op":"move","from":"/tags/0","path":"/info/tag"},
       {"op":"test","path":"/info","value":{"tag":"a","a":[1.0],"b/c":[1]}}]
      """)
    #expect(response.status == 200, "\(response.text)")
    #expect(response["Keyway-Cursor"] == "\(server.epoch)-\(try server.revision)")
    let read = try server.client.must("GET", department)
    #expect(read.text == response.text && read["ETag"] == response["ETag"])
    #expect(read.json["name"].text == "N")
    #expect(read.json["marks"].json == "[10,15,20,30]")
    #expect(read.json["employees"].json == #"["Employee/2","Employee/3","Employee/4"]"#)
    #expect(read.json["tags"].json == #"["b"]"#)
    #expect(read.json["info"].json == #"{"a":[1],"b/c":[1],"tag":"a"}"#)
    #expect(try server.client.json("/v1/objects/Employee/1")["department"].isNull)
  }

  @Test("The named keys are set as a whole, each told as a setting, in one event")
  func told() throws {
    let stream = try server.client.stream(department + "/name,marks,tags?options=old,new")
    _ = try patch(
      #"[{"op":"add","path":"/marks/-","value":40},{"op":"remove","path":"/name"},"#
        + #"{"op":"test","path":"/tags/0","value":"a"}]"#,
      ["Keyway-Writer": "w"])
    let event = try stream.next()
    #expect(event.json["writer"].text == "w")
    #expect(
      event.changes.map(\.json) == [
        #"{"object":"Department/1","keyPath":"name","kind":"setting","old":"Engines","new":null}"#,
        #"{"object":"Department/1","keyPath":"marks","kind":"setting","old":[10,20,30],"new":[10,20,30,40]}"#,
      ])
  }

  @Test("A test that does not hold is 409, applies nothing and notifies no observer; If-Match holds for patches too")
  func failedTest() throws {
    let before = try server.revision
    let tag = try #require(server.client.must("GET", department)["ETag"])
    let failed = try patch(
      #"[{"op":"replace","path":"/name","value":"N"},{"op":"test","path":"/marks/0","value":11}]"#)
    #expect(failed.status == 409 && failed.problem == "patch-test-failed")
    #expect(failed.json["detail"].text?.contains("operation 1 of the patch") == true)
    #expect(failed.json["object"].text == "Department/1")
    #expect(try server.revision == before)
    #expect(try patch("[]", ["If-Match": "\"\(server.epoch)-1\""]).status == 412)
    #expect(try patch("[]", ["If-Match": tag]).status == 200)
  }

  static let refusals: [(body: String, status: Int, code: String)] = [
    ("[", 400, "malformed-json"), ("{}", 400, "malformed-json"), (#""x""#, 400, "malformed-json"),
    ("[7]", 400, "malformed-json"), (#"[{"op":"increment","path":"/name"}]"#, 400, "malformed-json"),
    (#"[{"op":"add","path":"/name"}]"#, 400, "malformed-json"),
    (#"[{"op":"remove"}]"#, 400, "malformed-json"), (#"[{"op":"remove","path":"name"}]"#, 400, "malformed-json"),
    (#"[{"op":"remove","path":"/a~2"}]"#, 400, "malformed-json"),
    (#"[{"op":"move","path":"/a"}]"#, 400, "malformed-json"),
    (#"[{"op":"move","from":"/info","path":"/info/a"}]"#, 400, "malformed-json"),
    (#"[{"op":"replace","op":"remove","path":"/name"}]"#, 400, "malformed-json"),
    (#"[{"op":"remove","path":"/nope"}]"#, 422, "invalid-value"),
    (#"[{"op":"remove","path":"/marks/3"}]"#, 422, "invalid-value"),
    (#"[{"op":"add","path":"/marks/01","value":1}]"#, 422, "invalid-value"),
    (#"[{"op":"add","path":"/marks/-","value":101}]"#, 422, "invalid-value"),
    (#"[{"op":"add","path":"/marks/-","value":10}]"#, 422, "invalid-value"),
    (#"[{"op":"add","path":"/employees/-","value":"Employee/404"}]"#, 422, "invalid-value"),
    (#"[{"op":"add","path":"/employees/-","value":"Department/1"}]"#, 422, "wrong-entity"),
    (#"[{"op":"replace","path":"","value":7}]"#, 422, "invalid-value"),
    (#"[{"op":"add","path":"/nope","value":7}]"#, 422, "invalid-value"),
    (#"[{"op":"replace","path":"/total","value":7}]"#, 422, "read-only-key"),
    (#"[{"op":"replace","path":"/@ref","value":"Department/2"}]"#, 422, "invalid-value"),
    (#"[{"op":"test","path":"/name","value":null}]"#, 409, "patch-test-failed"),
  ]

  @Test("A malformed patch is 400, an inapplicable one is 422, and neither changes anything", arguments: refusals)
  func refused(_ body: String, _ status: Int, _ code: String) throws {
    let before = try server.client.must("GET", department)
    let revision = try server.revision
    let response = try patch(body)
    #expect(response.status == status && response.problem == code, "\(response.text)")
    #expect(try server.revision == revision)
    #expect(try server.client.must("GET", department).text == before.text)
  }

  @Test("A patch has at most patch.operations operations")
  func limit() throws {
    let server = try TestServer { $0.requests.patchOperations = 3 }
    for (count, status) in [(3, 200), (4, 429)] {
      let body = repeatElement(#"{"op":"test","path":"/@ref","value":"Note/1"}"#, count: count).joined(separator: ",")
      let response = try server.client.send("PATCH", "/v1/objects/Note/1", Self.type, body: "[\(body)]")
      #expect(response.status == status)
      if status == 429 { #expect(response.problem == "too-many-operations") }
    }
    // Merge patches have no operations to count.
    let merged = #"{"tags":{"a":1,"b":2,"c":3,"d":4}}"#
    try server.client.must("PATCH", "/v1/objects/Note/1", body: merged)
  }

  @Test("Accept-Patch tells what an object can be patched with; key paths, transactions and creates want plain JSON")
  func mediaTypes() throws {
    let types = "application/json, application/merge-patch+json, application/json-patch+json"
    #expect(try server.client.send("OPTIONS", department)["Accept-Patch"] == types)
    #expect(try server.client.send("OPTIONS", "/v1/streams/x/cells/a")["Accept-Patch"] != nil)
    #expect(try server.client.send("OPTIONS", department + "/name")["Accept-Patch"] == nil)
    let other = try server.client.send("PATCH", department, ["Content-Type": "text/plain"], body: "[]")
    #expect(other.status == 415 && other["Accept-Patch"] == types)
    for (method, target) in [
      ("PUT", department + "/name"), ("POST", department + "/marks"), ("PUT", department),
      ("POST", "/v1/transactions"), ("POST", "/v1/objects/Department"),
    ] {
      let response = try server.client.send(method, target, Self.type, body: "[]")
      #expect(response.status == 415 && response["Accept"] == "application/json", "\(method) \(target)")
    }
    #expect(try server.client.send("PATCH", department + "/name", Self.type, body: "[]").status == 405)
    let unknown = try server.client.send("PATCH", "/v1/objects/Department/404", Self.type, body: "[]")
    #expect(unknown.problem == "unknown-object")
  }
}
