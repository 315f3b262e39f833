import KeyValueModel
import KeywayServer
import Store
import TestKit
import Testing

@Suite("Mistakes in live queries")
struct LiveQueryMistakeTests {
  static let mistakes: [(parameters: String, status: Int, code: String, detail: String)] = [
    ("filter=salary%20%3E", 400, "malformed-filter", "line 1, column"),
    ("filter=true%0A%26%26%20nope%20%3D%3D%201", 400, "malformed-filter", "line 2, column 4"),
    ("filter=salary%20%2B%201.0", 400, "malformed-filter", "line 1"),
    ("filter=1", 400, "malformed-filter", "line 1"),
    ("filter=", 400, "malformed-filter", "line 1"),
    ("sort=nope", 404, "undefined-key", "nope"),
    ("sort=salary,", 400, "malformed-key-path", ""),
    ("sort=department.", 400, "malformed-key-path", ""),
    ("sort=department.employees", 422, "invalid-value", ""),
    ("sort=department.employees.name", 422, "invalid-value", ""),
    ("section=nope", 404, "undefined-key", "nope"),
    ("section=department.employees", 422, "invalid-value", ""),
    ("section=", 400, "malformed-key-path", ""),
    ("keys=nope", 404, "undefined-key", "nope"),
    ("keys=name,department.nme", 404, "undefined-key", "Department has no key 'nme'; did you mean 'name'?"),
    ("keys=department.employees.name", 422, "unobservable-key-path", "employees"),
    ("keys=", 400, "malformed-key-path", ""),
    ("aggregate=", 400, "malformed-query", "aggregate"),
    ("aggregate=salary", 400, "malformed-query", "'salary'"),
    ("aggregate=@count,@sum.department.employees.salary", 400, "malformed-query", "collection"),
    ("aggregate=@sum.salry", 404, "undefined-key", "did you mean 'salary'?"),
    ("aggregate=@sum.name", 422, "invalid-value", "numbers"),
    ("limit=-1", 400, "malformed-query", "limit"),
    ("limit=ten", 400, "malformed-query", "limit"),
    ("limit=1.5", 400, "malformed-query", "limit"),
    ("limit=99999999999999999999", 400, "malformed-query", "limit"),
    ("limit=", 400, "malformed-query", "limit"),
    ("overflow=x", 400, "malformed-query", "overflow"),
    ("expand=department", 400, "malformed-query", "expand"),
    ("page=1.2", 400, "malformed-query", "page"),
    ("options=new", 400, "malformed-query", "options"),
    ("limit=1&limit=2", 400, "malformed-query", "limit"),
    ("context=\(String(repeating: "x", count: 1025))", 400, "malformed-query", "context"),
  ]

  @Test("Each mistake has its problem, to GET and to HEAD, and opens nothing", arguments: mistakes)
  func refusedParameters(_ parameters: String, _ status: Int, _ code: String, _ detail: String) throws {
    let server = try Staff.server()
    let headers = ["Accept": "text/event-stream"]
    let response = try server.client.send("GET", "/v1/objects/Employee?\(parameters)", headers)
    #expect(response.status == status, "\(response.text)")
    #expect(response.problem == code, "\(response.text)")
    #expect(response.json["detail"].text?.contains(detail) == true, "\(response.text)")
    #expect(try server.client.send("HEAD", "/v1/objects/Employee?\(parameters)", headers).status == status)
    let state = try server.client.json("/v1/status")
    #expect(state["streams"].whole == 0)
    #expect(state["observations"].whole == 0)
    #expect(server.openQueries == 0)
  }

  @Test("An unknown entity is 404")
  func unknownEntity() throws {
    let server = try Staff.server()
    let response = try server.client.send("GET", "/v1/objects/Nobody", ["Accept": "text/event-stream"])
    #expect(response.problem == "unknown-entity")
  }

  static let bindings: [(body: String, status: Int, code: String)] = [
    (#"{"entity":"Nobody"}"#, 404, "unknown-entity"),
    (#"{"entity":7}"#, 422, "invalid-value"),
    (#"{"entity":"Employee","filter":"salary >"}"#, 400, "malformed-filter"),
    (#"{"entity":"Employee","filter":"1"}"#, 400, "malformed-filter"),
    (#"{"entity":"Employee","filter":true}"#, 422, "invalid-value"),
    (#"{"entity":"Employee","sort":["name"]}"#, 422, "invalid-value"),
    (#"{"entity":"Employee","sort":"nope"}"#, 404, "undefined-key"),
    (#"{"entity":"Employee","sort":"department.employees"}"#, 422, "invalid-value"),
    (#"{"entity":"Employee","section":"department.employees"}"#, 422, "invalid-value"),
    (#"{"entity":"Employee","section":1}"#, 422, "invalid-value"),
    (#"{"entity":"Employee","limit":-1}"#, 422, "invalid-value"),
    (#"{"entity":"Employee","limit":1.5}"#, 422, "invalid-value"),
    (#"{"entity":"Employee","limit":"1"}"#, 422, "invalid-value"),
    (#"{"entity":"Employee","keys":"name"}"#, 422, "invalid-value"),
    (#"{"entity":"Employee","keys":["nope"]}"#, 404, "undefined-key"),
    (#"{"entity":"Employee","keys":[1]}"#, 422, "invalid-value"),
    (#"{"entity":"Employee","object":"Employee/1"}"#, 422, "invalid-value"),
    (#"{"entity":"Employee","keyPaths":["name"]}"#, 422, "invalid-value"),
    (#"{"entity":"Employee","options":["new"]}"#, 422, "invalid-value"),
    (#"{"entity":"Employee","visible":"yes"}"#, 422, "invalid-value"),
    (#"{"entity":"Employee","expand":"department"}"#, 422, "invalid-value"),
    (#"{"object":"Employee/1","filter":"true"}"#, 422, "invalid-value"),
    (#"{"object":"Employee/1","limit":1}"#, 422, "invalid-value"),
    (#"{"filter":"true"}"#, 422, "invalid-value"),
  ]

  @Test("Each mistake in a binding has its problem, binds nothing and tells nothing", arguments: bindings)
  func refusedBindings(_ body: String, _ status: Int, _ code: String) throws {
    let server = try Staff.server()
    let screen = try CellScreen(server)
    try screen.bind("kept", #"{"entity":"Employee"}"#)
    try screen.told()
    let before = try server.client.json(screen.path)
    let cells = "{\"cells\":{\"a\":{\"entity\":\"Department\"},\"kept\":\(body)}}"
    let requests = [
      ("PUT", "\(screen.path)/cells/kept", body), ("PUT", "\(screen.path)/cells", cells),
      ("POST", "/v1/streams", cells),
    ]
    for (method, target, body) in requests {
      let response = try server.client.send(method, target, body: body)
      #expect(response.status == status, "\(method) \(response.text)")
      #expect(response.problem == code, "\(method) \(response.text)")
    }
    #expect(try server.client.json(screen.path) == before)
    #expect(server.openQueries == 1)
    #expect(try server.client.json("/v1/status")["streams"].whole == 1)
    #expect(try screen.told().isEmpty)
  }

  @Test("A filter that costs too much is malformed-filter, and nothing is watched")
  func tooCostly() throws {
    let server = try Staff.server { $0.store.queryOpeningCost = 20 }
    let filter = "[1,2,3,4,5].all(a, [1,2,3,4,5].all(b, a + b < 100))"
    let target = Staff.target("Employee", ["filter": filter])
    #expect(try server.client.send("GET", target, ["Accept": "text/event-stream"]).problem == "malformed-filter")
    let screen = try CellScreen(server)
    let binding = try server.client.send(
      "PUT", "\(screen.path)/cells/a", body: #"{"entity":"Employee","filter":"\#(filter)"}"#)
    #expect(binding.problem == "malformed-filter", "\(binding.text)")
    #expect(server.openQueries == 0)
    #expect(try screen.told().isEmpty)
  }

  @Test("There are at most queries.maximum different queries; one more is told too-many-queries, the same is not")
  func tooMany() throws {
    let server = try Staff.server { $0.store.queries = 2 }
    let headers = ["Accept": "text/event-stream"]
    let screen = try CellScreen(server, cells: #"{"a":{"entity":"Employee"}}"#)
    let stream = try server.client.stream("/v1/objects/Department")
    try screen.told()
    let refused = try server.client.send("GET", "/v1/objects/Department?limit=1", headers)
    #expect(refused.status == 503)
    #expect(refused.problem == "too-many-queries")
    #expect(refused["Retry-After"] != nil)
    let before = try server.client.json(screen.path)
    let bound = try server.client.send(
      "PUT", "\(screen.path)/cells",
      body: #"{"cells":{"a":{"entity":"Employee"},"b":{"entity":"Department"},"c":{"entity":"Manager"}}}"#)
    #expect(bound.problem == "too-many-queries")
    #expect(try server.client.json(screen.path) == before)
    #expect(server.openQueries == 2)
    try screen.bind("b", #"{"entity":"Department"}"#)
    #expect(try screen.told().map(\.name) == ["results"])
    stream.socket.close()
    try server.client.must("DELETE", "\(screen.path)/cells/b")
    #expect(Deadline().awaits { server.openQueries == 1 })
    _ = try server.client.stream("/v1/objects/Manager").next()
  }
}
