import KeyValueModel
import TestKit
import Testing

@Suite("To-many key paths")
struct CollectionTests {
  private let server: TestServer
  private let employees = "/v1/objects/Department/1/employees"
  private let friends = "/v1/objects/Employee/1/friends"

  init() throws { server = try CollectionFixture.server() }

  /// Sends a write and returns the collection in its response.
  private func write(
    _ method: String, _ target: String, _ headers: [String: String] = [:], body: String? = nil
  ) throws -> String {
    let response = try server.client.must(method, target, headers, body: body)
    #expect(response.status == 200, "\(method) \(target)")
    #expect(response["Keyway-Cursor"] == "\(server.epoch)-\(try server.revision)")
    let path = target.split(separator: "?")[0]
    let read = try server.client.must("GET", String(path))
    #expect(read.text == response.text)
    #expect(read["ETag"] == response["ETag"])
    return try #require(response.jsonText)
  }

  @Test("POST appends a reference, or an array of them, and the other side follows")
  func append() throws {
    #expect(
      try write("POST", employees, body: #""Employee/4""#)
        == #"["Employee/1","Employee/2","Employee/3","Employee/4"]"#)
    #expect(try server.client.json("/v1/objects/Employee/4")["department"].text == "Department/1")
    #expect(
      try write("POST", "/v1/objects/Department/2/employees", body: #"["Manager/1","Employee/1"]"#)
        == #"["Manager/1","Employee/1"]"#)
    #expect(try server.client.json(employees).json == #"["Employee/2","Employee/3","Employee/4"]"#)
  }

  @Test("POST with index inserts at places of the result, whatever their order")
  func insert() throws {
    #expect(
      try write("POST", employees + "?index=2,0", body: #"["Employee/4","Manager/1"]"#)
        == #"["Manager/1","Employee/1","Employee/4","Employee/2","Employee/3"]"#)
    #expect(try write("POST", "/v1/objects/Department/1/marks?index=3", body: "40") == "[10,20,30,40]")
  }

  @Test("POST makes objects in place: with ids of the server, or the one that @ref names, also of a subclass")
  func createInPlace() throws {
    let written = try write(
      "POST", employees + "?index=0,1,4",
      body: #"[{"name":"New","@revision":9},{"@ref":"Manager/7","name":"Max","bonus":1},"Employee/4"]"#)
    let members = try Value(json: written).items.compactMap(\.text)
    #expect(Array(members[1...]) == ["Manager/7", "Employee/1", "Employee/2", "Employee/4", "Employee/3"])
    #expect(members[0].wholeMatch(of: /Employee\/[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f-]{21}/) != nil)
    let new = try server.client.json("/v1/objects/\(members[0])")
    #expect(new["name"].text == "New" && new["department"].text == "Department/1")
    #expect(try server.client.json("/v1/objects/Manager/7")["bonus"].double == 1)
    let revision = try server.revision
    _ = try write("POST", "/v1/objects/Department/2/employees", body: #"{"name":"Alone"}"#)
    #expect(try server.revision == revision + 1)
  }

  @Test("An object that is made in place may lack what the inverse gives it, and must have all else that it wants")
  func createWithRequiredInverse() throws {
    let schema = """
      entities:
        Folder:
          keys:
            files: { toMany: File, inverse: folder, delete: cascade }
        File:
          keys:
            folder: { toOne: Folder, inverse: files, optional: false }
            name: { type: string, optional: false }
      """
    let server = try TestServer(schema: schema, objects: [("Folder/1", "{}")])
    try server.client.must("POST", "/v1/objects/Folder/1/files", body: #"{"@ref":"File/1","name":"a"}"#)
    #expect(try server.client.json("/v1/objects/File/1")["folder"].text == "Folder/1")
    let before = try server.revision
    let refused = try server.client.send("POST", "/v1/objects/Folder/1/files", body: #"[{"name":"b"},{}]"#)
    #expect(refused.status == 422 && refused.problem == "null-not-allowed")
    #expect(try server.revision == before)
    #expect(try server.client.json("/v1/objects/File")["count"].whole == 1)
  }

  @Test("DELETE takes members out by their places or by their names, and no member is none already")
  func remove() throws {
    #expect(try write("DELETE", employees + "?index=2,0") == #"["Employee/2"]"#)
    #expect(try server.client.json("/v1/objects/Employee/1")["department"].isNull)
    #expect(try write("DELETE", employees + "?object=Employee/2,Employee/1") == "[]")
    let stream = try server.subscribed("Department/1/employees")
    #expect(try write("DELETE", employees + "?object=Employee/404") == "[]")
    try server.set("Department/1/employees", #"["Employee/1"]"#)
    #expect(try stream.next().changes.map { $0["kind"].text } == ["setting"])
  }

  @Test("DELETE of values takes one or an array of them as JSON")
  func removeValues() throws {
    #expect(try write("DELETE", "/v1/objects/Department/1/tags?value=%22a%22") == #"["b"]"#)
    #expect(try write("DELETE", "/v1/objects/Department/1/marks?value=[10,30.0,99]") == "[20]")
    #expect(try write("DELETE", "/v1/objects/Department/1/marks?index=0") == "[]")
  }

  @Test("DELETE without parameters empties, with 204 and the new ETag")
  func empty() throws {
    for path in [employees, "/v1/objects/Department/1/tags"] {
      let response = try server.client.must("DELETE", path)
      #expect(response.status == 204)
      #expect(response["Keyway-Cursor"] == "\(server.epoch)-\(try server.revision)")
      let read = try server.client.must("GET", path)
      #expect(read.jsonText == "[]" && read["ETag"] == response["ETag"])
    }
  }

  @Test("PUT with index replaces: one member, or as many as there are places, made in place or not")
  func replace() throws {
    #expect(
      try write("PUT", employees + "?index=1", body: #""Employee/4""#)
        == #"["Employee/1","Employee/4","Employee/3"]"#)
    #expect(
      try write("PUT", employees + "?index=2,0", body: #"[{"@ref":"Employee/9"},"Employee/2"]"#)
        == #"["Employee/2","Employee/4","Employee/9"]"#)
    #expect(try write("PUT", "/v1/objects/Department/1/marks?index=1", body: "[21]") == "[10,21,30]")
    #expect(try server.client.json("/v1/objects/Employee/3")["department"].isNull)
  }

  @Test("PUT without index sets the whole")
  func set() throws {
    #expect(try write("PUT", employees, body: #"["Employee/3","Employee/1"]"#) == #"["Employee/3","Employee/1"]"#)
    #expect(try write("PUT", "/v1/objects/Department/1/tags", body: #"["z","a","z"]"#) == #"["a","z"]"#)
  }

  @Test("The set operations work on what is not ordered, and a union may make objects")
  func setOperations() throws {
    #expect(
      try write("POST", friends + "?operation=union", body: #"["Manager/1","Employee/3","Employee/2"]"#)
        == #"["Employee/2","Employee/3","Manager/1"]"#)
    #expect(
      try write("POST", friends + "?operation=minus", body: #""Employee/3""#) == #"["Employee/2","Manager/1"]"#)
    #expect(
      try write("POST", friends + "?operation=intersect", body: #"["Employee/4","Manager/1"]"#) == #"["Manager/1"]"#)
    #expect(
      try write("POST", friends + "?operation=set", body: #"["Employee/4",{"@ref":"Employee/0"}]"#)
        == #"["Employee/0","Employee/4"]"#)
    #expect(try write("POST", friends, body: #"["Employee/0","Manager/1"]"#).contains("Manager/1"))
    #expect(
      try write("POST", "/v1/objects/Department/1/tags?operation=union", body: #""c""#) == #"["a","b","c"]"#)
  }

  @Test("Members of type json are in an array where they are arrays themselves, and objects are values there")
  func jsonMembers() throws {
    let notes = "/v1/objects/Department/1/notes"
    #expect(try write("POST", notes, body: #"{"@ref":7}"#) == #"[{"@ref":7}]"#)
    #expect(try write("POST", notes + "?index=0", body: "[[1,2]]") == #"[[1,2],{"@ref":7}]"#)
    #expect(try write("DELETE", notes + "?value=[[1,2]]") == #"[{"@ref":7}]"#)
  }

  @Test("A key path may lead through a to-one to the to-many")
  func throughToOne() throws {
    let target = "/v1/objects/Employee/1/department.employees"
    #expect(try write("DELETE", target + "?index=2") == #"["Employee/1","Employee/2"]"#)
    #expect(try write("POST", target, body: #"{"@ref":"Employee/9"}"#).hasSuffix(#""Employee/9"]"#))
  }

  @Test("If-Match and If-None-Match hold for every write of a to-many, and a stale one has the present ETag")
  func conditions() throws {
    let writes = [
      ("POST", "", #""Employee/4""#), ("POST", "?index=0", #""Manager/1""#), ("PUT", "?index=0", #"{"name":"n"}"#),
      ("DELETE", "?index=0", nil), ("DELETE", "?object=Employee/2", nil), ("PUT", "", "[]"), ("DELETE", "", nil),
    ]
    for (method, query, body) in writes {
      let old = try #require(server.client.must("GET", employees)["ETag"])
      try server.set("Department/1/name", #""N""#)
      let present = try server.client.must("GET", employees)["ETag"]
      let before = try server.revision
      for header in [["If-Match": old], ["If-None-Match": present ?? ""]] {
        let stale = try server.client.send(method, employees + query, header, body: body)
        #expect(stale.status == 412 && stale.problem == "stale-revision", "\(method) \(query) \(header)")
        #expect(stale["ETag"] == present)
      }
      #expect(try server.revision == before)
      let matching = ["If-Match": present ?? "", "If-None-Match": old]
      try server.client.must(method, employees + query, matching, body: body)
    }
  }

  @Test("Conditions do not hide that a key path cannot be written, and are not looked at for it")
  func conditionsOfUnwritable() throws {
    for condition in [["If-Match": "\"\(server.epoch)-1\""], ["If-None-Match": "\"\(server.epoch)-1\""]] {
      let through = try server.client.send("PUT", employees + ".name", condition, body: #""x""#)
      #expect(through.problem == "not-a-collection")
      let operation = try server.client.send("PUT", employees + ".@count", condition, body: "1")
      #expect(operation.problem == "malformed-key-path")
    }
  }

  @Test("A writer's name comes with the change, and a retried POST with an Idempotency-Key inserts once")
  func writerAndIdempotency() throws {
    let stream = try server.subscribed("Department/2/employees")
    let headers = ["Keyway-Writer": "w", "Idempotency-Key": "k"]
    let target = "/v1/objects/Department/2/employees"
    let first = try server.client.must("POST", target, headers, body: #"{"name":"x"}"#)
    let second = try server.client.must("POST", target, headers, body: #"{"name":"x"}"#)
    #expect(first.body == second.body && second["Idempotency-Replayed"] == "true")
    #expect(try stream.next().json["writer"].text == "w")
    #expect(try server.client.json(target).items.count == 1)
  }

  @Test("Objects that are made in place count like operations, and too many of them are refused as a whole")
  func tooMany() throws {
    let body = "[" + repeatElement("{}", count: 10_000).joined(separator: ",") + "]"
    let before = try server.revision
    let refused = try server.client.send("POST", employees, body: body)
    #expect(refused.status == 429 && refused.problem == "too-many-operations", "\(refused.text)")
    #expect(try server.revision == before)
  }

  static let refusals: [(request: String, body: String?, status: Int, code: String)] = [
    ("POST Department/1/employees?index=x", #""Employee/4""#, 400, "malformed-query"),
    ("POST Department/1/employees?index=", #""Employee/4""#, 400, "malformed-query"),
    ("POST Department/1/employees?index=0,", #""Employee/4""#, 400, "malformed-query"),
    ("POST Department/1/employees?index=1.5", #""Employee/4""#, 400, "malformed-query"),
    ("POST Department/1/employees?place=1", #""Employee/4""#, 400, "malformed-query"),
    ("POST Department/1/employees?index=0&operation=union", #""Employee/4""#, 400, "malformed-query"),
    ("POST Employee/1/friends?operation=add", #""Employee/4""#, 400, "malformed-query"),
    ("POST Employee/1/friends?operation=", #""Employee/4""#, 400, "malformed-query"),
    ("PUT Department/1/employees?operation=set", "[]", 400, "malformed-query"),
    ("PUT Department/1/employees?index=x", #""Employee/4""#, 400, "malformed-query"),
    ("DELETE Department/1/employees?index=0&object=Employee/1", nil, 400, "malformed-query"),
    ("DELETE Department/1/employees?object=Employee", nil, 400, "malformed-query"),
    ("DELETE Department/1/employees?object=", nil, 400, "malformed-query"),
    ("DELETE Department/1/tags?object=Employee/1", nil, 400, "malformed-query"),
    ("DELETE Department/1/tags?value=a", nil, 400, "malformed-query"),
    ("DELETE Department/1/tags?value=", nil, 400, "malformed-query"),
    ("POST Department/1/employees?index=5", #""Employee/4""#, 422, "index-out-of-range"),
    ("POST Department/1/employees?index=-1", #""Employee/4""#, 422, "index-out-of-range"),
    ("POST Department/1/employees?index=99999999999999999999", #""Employee/4""#, 422, "index-out-of-range"),
    ("POST Department/1/employees?index=0,0", #"["Employee/4","Manager/1"]"#, 422, "index-out-of-range"),
    ("POST Employee/1/friends?index=0", #""Employee/4""#, 422, "index-out-of-range"),
    ("PUT Department/1/employees?index=3", #""Employee/4""#, 422, "index-out-of-range"),
    ("PUT Department/1/employees?index=0,0", #"["Employee/4","Manager/1"]"#, 422, "index-out-of-range"),
    ("DELETE Department/1/employees?index=3", nil, 422, "index-out-of-range"),
    ("DELETE Department/1/employees?index=1,1", nil, 422, "index-out-of-range"),
    ("POST Department/1/employees?index=0,1", #""Employee/4""#, 422, "invalid-value"),
    ("PUT Department/1/employees?index=0", #"["Employee/4","Manager/1"]"#, 422, "invalid-value"),
    ("PUT Department/1/employees?index=0", #""Employee/2""#, 422, "invalid-value"),
    ("POST Department/1/employees", #""Employee/1""#, 422, "invalid-value"),
    ("POST Department/1/employees", #"["Employee/4","Employee/4"]"#, 422, "invalid-value"),
    ("POST Department/1/employees", #""Employee/404""#, 422, "invalid-value"),
    ("POST Department/1/employees", "7", 422, "invalid-value"),
    ("POST Department/1/employees", "null", 422, "null-not-allowed"),
    ("POST Department/1/employees", #""Department/2""#, 422, "wrong-entity"),
    ("POST Department/1/employees", #"{"@ref":"Department/9"}"#, 422, "wrong-entity"),
    ("POST Department/1/employees", #"{"@ref":"Employee"}"#, 422, "invalid-value"),
    ("POST Department/1/employees", #"{"@ref":7}"#, 422, "invalid-value"),
    ("POST Department/1/employees", #"{"@ref":"Employee/1"}"#, 409, "already-exists"),
    ("POST Department/1/employees", #"[{"name":"a"},{"nme":"b"}]"#, 422, "invalid-value"),
    ("POST Department/1/employees", #"{"salary":"much"}"#, 422, "invalid-value"),
    ("POST Employee/1/friends?operation=minus", "{}", 422, "invalid-value"),
    ("POST Employee/1/friends?operation=intersect", "{}", 422, "invalid-value"),
    ("POST Department/1/marks", "101", 422, "invalid-value"),
    ("POST Department/1/marks", #"{"a":1}"#, 422, "invalid-value"),
    ("POST Department/1/tags", #""""#, 422, "invalid-value"),
    ("DELETE Department/1/marks?value=%22a%22", nil, 422, "invalid-value"),
    ("POST Department/1/employees?operation=union", #""Employee/4""#, 422, "not-a-collection"),
    ("POST Department/1/name", #""x""#, 422, "not-a-collection"),
    ("POST Department/1/head", #""Employee/1""#, 422, "not-a-collection"),
    ("PUT Department/1/name?index=0", #""x""#, 422, "not-a-collection"),
    ("DELETE Department/1/name?index=0", nil, 422, "not-a-collection"),
    ("DELETE Department/1/head?object=Employee/1", nil, 422, "not-a-collection"),
    ("POST Department/1/employees.friends", #""Employee/4""#, 422, "not-a-collection"),
    ("PUT Department/1/employees.name", #""x""#, 422, "not-a-collection"),
    ("DELETE Department/1/employees.name", nil, 422, "not-a-collection"),
    ("POST Department/1/employees.@unionOfObjects.friends", #""Employee/4""#, 400, "malformed-key-path"),
    ("PUT Department/1/employees.@count", "1", 400, "malformed-key-path"),
    ("DELETE Department/1/employees.@sum.salary", nil, 400, "malformed-key-path"),
    ("POST Department/1/staff", #""Employee/4""#, 404, "undefined-key"),
    ("POST Department/404/employees", #""Employee/4""#, 404, "unknown-object"),
    ("POST Department/404/staff", #"{"a":1}"#, 404, "unknown-object"),
    ("DELETE Department/404/employees?index=0", nil, 404, "unknown-object"),
    ("POST Employee/4/department.employees", #""Employee/1""#, 409, "null-in-key-path"),
    ("PUT Department/1/employees", #"{"name":"x"}"#, 422, "invalid-value"),
    ("PUT Department/1/employees", #"["Employee/1","Employee/1"]"#, 422, "invalid-value"),
    ("PUT Department/1/employees", "null", 422, "null-not-allowed"),
  ]

  @Test("Each mistake has its status and code, takes no revision and notifies no observer")
  func refused() throws {
    let stream = try server.client.stream("/v1/objects/Department/1/employees,marks,tags?options=new")
    let state = try server.client.json("/v1/objects/Department/1")
    let before = try server.revision
    for (request, body, status, code) in Self.refusals {
      let parts = request.split(separator: " ")
      let response = try server.client.send(String(parts[0]), "/v1/objects/\(parts[1])", body: body)
      #expect(response.status == status, "\(request) \(body ?? "")\n\(response.text)")
      #expect(response.problem == code, "\(request) \(body ?? "")\n\(response.text)")
      #expect(try server.client.send("GET", "/v1/problems/\(code)").status == 200)
    }
    #expect(try server.revision == before)
    #expect(try server.client.json("/v1/objects/Department/1") == state)
    try server.set("Department/1/marks", "[]")
    #expect(try stream.next().json["revision"].whole == before + 1)
  }
}
