import KeyValueModel
import KeywayServer
import TestKit
import Testing

@Suite("Reading through to-manys")
struct CollectionReadTests {
  static let values: [(keyPath: String, value: String)] = [
    ("employees", #"["Employee/1","Employee/2","Employee/3"]"#), ("employees.name", #"["Ada","Bob","Cyd"]"#),
    ("employees.department.name", #"["Engines","Engines","Engines"]"#), ("employees.@count", "3"),
    ("employees.@sum.salary", "600"), ("employees.@avg.salary", "200"), ("employees.@min.salary", "100"),
    ("employees.@max.name", #""Cyd""#),
    ("employees.@unionOfObjects.department.name", #"["Engines","Engines","Engines"]"#),
    ("employees.@distinctUnionOfObjects.department.name", #"["Engines"]"#),
    ("employees.@distinctUnionOfArrays.department.employees", #"["Employee/1","Employee/2","Employee/3"]"#),
    ("employees.department.employees.name", #"[["Ada","Bob","Cyd"],["Ada","Bob","Cyd"],["Ada","Bob","Cyd"]]"#),
    ("marks.@sum.self", "60"), ("marks.@avg.self", "20"), ("tags", #"["a","b"]"#), ("tags.@count", "2"),
    ("total", "600"),
    ("head.friends", "null"),
  ]

  @Test("A key path reads with operators and through to-manys as bare JSON, with an ETag that holds", arguments: values)
  func keyPaths(_ keyPath: String, _ value: String) throws {
    let server = try CollectionFixture.server()
    let target = "/v1/objects/Department/1/\(keyPath)"
    let response = try server.client.must("GET", target)
    #expect(response.jsonText == value)
    let tag = try #require(response["ETag"])
    #expect(try server.client.send("GET", target, ["If-None-Match": tag]).status == 304)
    let both = try server.client.must("GET", "/v1/objects/Department/1/name,\(keyPath)")
    #expect(both.jsonText == #"{"name":"Engines","\#(keyPath)":\#(value)}"#)
  }

  @Test("The ETag of a key path through a to-many follows its members")
  func tags() throws {
    let server = try CollectionFixture.server()
    for keyPath in ["employees.name", "employees.@sum.salary", "total"] {
      let target = "/v1/objects/Department/1/\(keyPath)"
      let before = try server.client.must("GET", target)["ETag"]
      try server.set("Employee/4/salary", "1")
      #expect(try server.client.must("GET", target)["ETag"] == before, "\(keyPath)")
      try server.set("Employee/2/salary", "201")
      #expect(try server.client.must("GET", target)["ETag"] != before, "\(keyPath)")
    }
  }

  @Test("keys picks a to-many; expand puts objects in the place of its references, and goes on behind them")
  func keysAndExpand() throws {
    let server = try CollectionFixture.server()
    try server.set("Employee/1/friends", #"["Employee/4"]"#)
    let department = "/v1/objects/Department/1"
    #expect(
      try server.client.json(department + "?keys=employees,tags").json.hasSuffix(
        #""employees":["Employee/1","Employee/2","Employee/3"],"tags":["a","b"]}"#))
    let expanded = try server.client.must("GET", department + "?expand=employees")
    #expect(expanded["ETag"] == nil)
    #expect(expanded.json["employees"].items.map { $0["name"].text } == ["Ada", "Bob", "Cyd"])
    #expect(expanded.json["employees"][0] == (try server.client.json("/v1/objects/Employee/1")))
    let deeper = try server.client.json(department + "?keys=employees&expand=employees.friends,employees.department")
    #expect(deeper["employees"][0]["friends"][0]["name"].text == "Dan")
    #expect(deeper["employees"][1]["friends"].json == "[]")
    #expect(deeper["employees"][2]["department"]["name"].text == "Engines")
    let fetched = try server.client.json("/v1/objects/Department?expand=employees&keys=employees")
    #expect(fetched["objects"].items.map { $0["employees"].items.count } == [3, 0])
    for text in ["tags", "employees.name", "employees.@count", "employees.@unionOfObjects.department", "employees.x"] {
      let wrong = try server.client.send("GET", department + "?expand=\(text)")
      #expect(wrong.status == 400 || wrong.problem == "undefined-key", "\(text)")
    }
  }

  @Test("The multiplication of objects in a response is bounded: expand, and a key path after its second to-many")
  func budget() throws {
    let server = try TestServer(schema: CollectionFixture.schema, objects: CollectionFixture.objects) {
      $0.requests.answerObjects = 9
    }
    let department = "/v1/objects/Department/1"
    let loop = repeatElement("employees.department", count: 14).joined(separator: ".")
    for target in [
      "\(department)/employees.department.employees.name",
      "\(department)/employees.@unionOfArrays.department.employees",
      "\(department)?expand=employees.department", "\(department)?keys=employees&expand=employees",
      "\(department)/name,employees.name",
    ] {
      #expect(try server.client.send("GET", target).status == 200, "\(target)")
    }
    for target in [
      "\(department)/\(loop).name", "\(department)/employees.@distinctUnionOfObjects.department.\(loop).name",
      "\(department)/employees.department.employees.name,employees.department.employees.salary",
      "\(department)?expand=employees.department.employees", "\(department)?expand=\(loop)",
      "/v1/objects/Department?expand=\(loop)",
    ] {
      let refused = try server.client.send("GET", target)
      #expect(refused.status == 429 && refused.problem == "too-many-objects", "\(target)\n\(refused.text)")
    }
  }

  static let refusals: [(keyPath: String, status: Int, code: String)] = [
    ("employees.@total.salary", 400, "malformed-key-path"), ("employees.@sum", 400, "malformed-key-path"),
    ("employees.@count.name", 400, "malformed-key-path"), ("@count", 400, "malformed-key-path"),
    ("employees.@unionOfObjects.friends.@count", 400, "malformed-key-path"),
    ("employees.@sum.name", 422, "invalid-value"), ("employees.@avg.department", 422, "invalid-value"),
    ("name.@count", 422, "not-a-collection"), ("employees.@unionOfArrays.name", 422, "not-a-collection"),
    ("employees.bonus", 404, "undefined-key"), ("tags.length", 404, "undefined-key"),
  ]

  @Test("A key path that cannot be read is refused, as JSON and as a stream", arguments: refusals)
  func refused(_ keyPath: String, _ status: Int, _ code: String) throws {
    let server = try CollectionFixture.server()
    for accept in ["application/json", "text/event-stream"] {
      let response = try server.client.send("GET", "/v1/objects/Department/1/\(keyPath)", ["Accept": accept])
      #expect(response.status == status && response.problem == code, "\(accept)\n\(response.text)")
    }
  }

  @Test(
    "A key path that goes on behind a to-many can be read and not observed",
    arguments: ["employees.name", "employees.@unionOfObjects.friends.name", "employees.department.employees.@count"])
  func unobservable(_ keyPath: String) throws {
    let server = try CollectionFixture.server()
    let target = "/v1/objects/Department/1/\(keyPath)"
    #expect(try server.client.send("GET", target).status == 200)
    let refused = try server.client.send("GET", target, ["Accept": "text/event-stream"])
    #expect(refused.status == 422 && refused.problem == "unobservable-key-path")
    let binding = #"{"cells":{"a":{"object":"Department/1","keyPaths":["\#(keyPath)"]}}}"#
    let cell = try server.client.send("POST", "/v1/streams", body: binding)
    #expect(cell.status == 422 && cell.problem == "unobservable-key-path")
    #expect(try server.client.json("/v1/status")["streams"].whole == 0)
  }

  @Test("JSON Schema describes to-manys: what their members are, their order, and their inverse")
  func schema() throws {
    let server = try CollectionFixture.server()
    let department = try server.client.json("/v1/entities/Department")
    #expect(
      department["properties"]["employees"].json
        == #"{"type":"array","uniqueItems":true,"default":[],"keyway:ordered":true,"items":{"type":"string"},"#
        + #""keyway:toMany":"Employee","keyway:inverse":"department","keyway:delete":"nullify"}"#)
    #expect(
      department["properties"]["marks"].json
        == #"{"type":"array","uniqueItems":true,"default":[],"keyway:ordered":true,"#
        + #""items":{"type":"integer","maximum":100}}"#)
    #expect(department["properties"]["tags"]["keyway:ordered"] == .bool(false))
    #expect(department["required"].json == "[]")
    #expect(department["keyway:display"].items.compactMap(\.text) == ["name", "head", "info", "total"])
  }
}
