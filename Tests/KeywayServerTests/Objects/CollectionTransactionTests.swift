import KeyValueModel
import TestKit
import Testing

@Suite("To-manys in transactions")
struct CollectionTransactionTests {
  private let server: TestServer
  private static let department = #""object":"Department/1","keyPath":"employees""#

  init() throws { server = try CollectionFixture.server() }

  @Test("insert, remove and replace work as their requests do, and each result names its object")
  func operations() throws {
    let stream = try server.client.stream("/v1/objects/Department/1/employees,marks?options=old,new")
    let response = try server.commit(
      #"{"op":"insert",\#(Self.department),"value":"Employee/4"}"#,
      #"{"op":"insert",\#(Self.department),"value":[{"@ref":"Manager/7","bonus":1},{"name":"n"}],"index":[0,1]}"#,
      #"{"op":"remove",\#(Self.department),"index":[1,5]}"#,
      #"{"op":"remove",\#(Self.department),"value":["Employee/2","Employee/404"]}"#,
      #"{"op":"replace",\#(Self.department),"index":[1],"value":"Employee/2"}"#,
      #"{"op":"set",\#(Self.department),"value":["Employee/3"]}"#,
      #"{"op":"remove","object":"Department/1","keyPath":"marks","value":20}"#)
    #expect(
      response.json["results"].items.map { $0["object"].text } == Array(repeating: "Department/1", count: 7))
    let changes = try stream.next().changes
    #expect(
      changes.map { $0["kind"].text } == [
        "insertion", "insertion", "removal", "removal", "replacement", "setting", "removal",
      ])
    #expect(changes.map { $0["indexes"].json } == ["[3]", "[0,1]", "[1,5]", "[2]", "[1]", "null", "[1]"])
    #expect(changes[5]["new"].json == #"["Employee/3"]"#)
    #expect(changes[6]["old"].json == "[20]")
  }

  @Test("A whole number is one however it is written, as place, revision, lifetime and limit")
  func wholeNumbers() throws {
    let revision = try server.client.json("/v1/objects/Department/1")["@revision"].whole ?? 0
    let department = #""object":"Department/1""#
    let response = try server.commit(
      #"{"op":"require",\#(department),"revision":\#(revision).0}"#,
      #"{"op":"insert",\#(department),"keyPath":"marks","value":[1,2],"index":[0.0,1e0]}"#,
      #"{"op":"patch",\#(department),"value":{},"lifetime":6e1}"#)
    #expect(response.json["results"].items.count == 3)
    let marks = try server.client.json("/v1/objects/Department/1/marks").items.map(\.whole)
    #expect(marks.prefix(2) == [1, 2])
    let stream = try server.client.stream(
      "/v1/streams", ["Content-Type": "application/json"], method: "POST", body: #"{"cells":{}}"#)
    let name = try stream.next().json["stream"].text ?? ""
    let cell = "/v1/streams/\(name)/cells/c"
    try server.client.must("PUT", cell, body: #"{"entity":"Department","limit":1.0}"#)
    #expect(try server.client.json(cell)["limit"].whole == 1)
    for limit in ["1.5", "1e30", "-1.0", "true"] {
      let answer = try server.client.send("PUT", cell, body: #"{"entity":"Department","limit":\#(limit)}"#)
      #expect(answer.problem == "invalid-value", "\(limit)")
    }
  }

  @Test("A bracket around indexed changes makes one setting of the whole")
  func bracket() throws {
    let stream = try server.client.stream("/v1/objects/Department/1/marks?options=old,new")
    try server.commit(
      #"{"op":"willChange","object":"Department/1","key":"marks"}"#,
      #"{"op":"insert","object":"Department/1","keyPath":"marks","value":40}"#,
      #"{"op":"remove","object":"Department/1","keyPath":"marks","index":[0]}"#,
      #"{"op":"didChange","object":"Department/1","key":"marks"}"#)
    #expect(
      try stream.next().changes.map(\.json) == [
        #"{"object":"Department/1","keyPath":"marks","kind":"setting","old":[10,20,30],"new":[20,30,40]}"#
      ])
  }

  @Test("An object created in a transaction can be made a member in it")
  func madeInTheSame() throws {
    try server.commit(
      #"{"op":"create","object":"Department/9","value":{}}"#, #"{"op":"create","object":"Employee/9","value":{}}"#,
      #"{"op":"insert","object":"Department/9","keyPath":"employees","value":["Employee/9",{"@ref":"Employee/10"}]}"#)
    #expect(
      try server.client.json("/v1/objects/Department/9/employees").json == #"["Employee/9","Employee/10"]"#)
  }

  static let refusals: [(operation: String, status: Int, code: String)] = [
    (#"{"op":"insert",\#(department)}"#, 422, "invalid-value"),
    (#"{"op":"insert","keyPath":"employees","value":[]}"#, 422, "invalid-value"),
    (#"{"op":"insert","object":"Department/1","value":[]}"#, 422, "invalid-value"),
    (#"{"op":"insert",\#(department),"value":[],"key":"x"}"#, 422, "invalid-value"),
    (#"{"op":"insert",\#(department),"value":["Employee/4"],"index":0}"#, 422, "invalid-value"),
    (#"{"op":"insert",\#(department),"value":["Employee/4"],"index":["0"]}"#, 422, "invalid-value"),
    (#"{"op":"insert",\#(department),"value":["Employee/4"],"index":[0.5]}"#, 422, "invalid-value"),
    (#"{"op":"insert",\#(department),"value":["Employee/4"],"index":null}"#, 422, "invalid-value"),
    (#"{"op":"insert",\#(department),"value":["Employee/4"],"index":[]}"#, 422, "invalid-value"),
    (#"{"op":"insert",\#(department),"value":["Employee/4"],"index":[-1]}"#, 422, "index-out-of-range"),
    (#"{"op":"insert",\#(department),"value":["Employee/4"],"index":[4]}"#, 422, "index-out-of-range"),
    (#"{"op":"insert",\#(department),"value":[{"@ref":"x"}]}"#, 422, "invalid-value"),
    (#"{"op":"insert",\#(department),"value":"Department/2"}"#, 422, "wrong-entity"),
    (#"{"op":"remove",\#(department)}"#, 422, "invalid-value"),
    (#"{"op":"remove",\#(department),"index":[0],"value":[]}"#, 422, "invalid-value"),
    (#"{"op":"remove",\#(department),"index":[0,0]}"#, 422, "index-out-of-range"),
    (#"{"op":"remove",\#(department),"value":{}}"#, 422, "invalid-value"),
    (#"{"op":"replace",\#(department),"value":"Employee/4"}"#, 422, "invalid-value"),
    (#"{"op":"replace",\#(department),"index":[0]}"#, 422, "invalid-value"),
    (#"{"op":"replace",\#(department),"index":[3],"value":"Employee/4"}"#, 422, "index-out-of-range"),
    (#"{"op":"replace",\#(department),"index":[0,1],"value":"Employee/4"}"#, 422, "invalid-value"),
    (#"{"op":"insert","object":"Department/1","keyPath":"name","value":"x"}"#, 422, "not-a-collection"),
    (#"{"op":"remove","object":"Department/1","keyPath":"head","index":[0]}"#, 422, "not-a-collection"),
    (#"{"op":"replace","object":"Department/1","keyPath":"x","index":[0],"value":1}"#, 404, "undefined-key"),
    (#"{"op":"insert","object":"Planet/1","keyPath":"x","value":1}"#, 404, "unknown-entity"),
    (#"{"op":"insert","object":"Department/404","keyPath":"x","value":1}"#, 404, "unknown-object"),
  ]

  @Test("Each mistake in an operation has its problem and its index", arguments: refusals)
  func refused(_ operation: String, _ status: Int, _ code: String) throws {
    let before = try server.revision
    let first = #"{"op":"create","object":"Employee/99","value":{}}"#
    let response = try server.client.send(
      "POST", "/v1/transactions", body: "{\"operations\":[\(first),\(operation)]}")
    #expect(response.status == status, "\(response.text)")
    #expect(response.problem == code, "\(response.text)")
    #expect(response.json["operation"].whole == 1)
    #expect(try server.revision == before)
    #expect(try server.client.send("GET", "/v1/objects/Employee/99").status == 404)
  }
}
