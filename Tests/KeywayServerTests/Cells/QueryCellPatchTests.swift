import KeyValueModel
import KeywayClient
import KeywayServer
import TestKit
import Testing

@Suite("Changing the query of a cell")
struct QueryCellPatchTests {
  let server: TestServer
  let screen: CellScreen

  init() throws {
    server = try Staff.server()
    screen = try CellScreen(server)
    try screen.bind("q", #"{"entity":"Employee","sort":"salary","keys":["salary"]}"#)
    try screen.told()
  }

  static let changes: [(change: String, names: [String])] = [
    (#"{"filter":"salary >= 15"}"#, ["Employee/4", "Employee/3", "Employee/1"]),
    (#"{"filter":"salary > 1000"}"#, []),
    (#"{"sort":"-salary"}"#, ["Employee/1", "Employee/3", "Employee/4", "Manager/5", "Employee/2"]),
    (#"{"sort":null,"limit":2}"#, ["Employee/1", "Employee/2"]),
    (#"{"limit":1}"#, ["Employee/2"]),
    (#"{"keys":["name"]}"#, ["Employee/2", "Manager/5", "Employee/4", "Employee/3", "Employee/1"]),
    (#"{"keys":null}"#, ["Employee/2", "Manager/5", "Employee/4", "Employee/3", "Employee/1"]),
    (#"{"entity":"Manager"}"#, ["Manager/5"]),
    (#"{"entity":"Department","sort":"-name","keys":["name"]}"#, ["Department/2", "Department/1"]),
    (#"{"filter":"true"}"#, ["Employee/2", "Manager/5", "Employee/4", "Employee/3", "Employee/1"]),
  ]

  @Test("A change of the query is one content that turns the rows shown into the new", arguments: changes)
  func visible(_ change: String, _ names: [String]) throws {
    try screen.patch("q", change)
    let told = try screen.told()
    #expect(told.map(\.name) == ["content"])
    #expect(told.first?.json["revision"].whole == (try server.revision))
    #expect(told.first?.id != nil)
    try check(names)
  }

  @Test("Off screen it is told later, in the same content as what happened meanwhile", arguments: changes)
  func invisible(_ change: String, _ names: [String]) throws {
    try screen.patch("q", #"{"visible":false}"#)
    try server.set("Employee/1/salary", "31")
    try screen.patch("q", change)
    try server.set("Employee/1/salary", "32")
    #expect(try screen.told().isEmpty)
    try screen.patch("q", #"{"visible":true}"#)
    let told = try screen.told()
    #expect(told.map(\.name) == ["content"])
    #expect(told.first?.json.has("coalesced") == true)
    try check(names)
  }

  @Test("Off screen, changed and changed back, it is told what became of its rows while it had another query")
  func andBack() throws {
    try screen.patch("q", #"{"visible":false}"#)
    try screen.patch("q", #"{"filter":"salary > 1000"}"#)
    try server.set("Employee/1/salary", "1")
    try screen.patch("q", #"{"filter":null}"#)
    try screen.patch("q", #"{"visible":true}"#)
    #expect(try screen.told().map(\.name) == ["content"])
    try check(["Employee/1", "Employee/2", "Manager/5", "Employee/4", "Employee/3"])
    try screen.patch("q", #"{"visible":false}"#)
    for filter in [#""salary > 1000""#, "null"] { try screen.patch("q", "{\"filter\":\(filter)}") }
    try screen.patch("q", #"{"visible":true}"#)
    #expect(try screen.told().isEmpty)
  }

  @Test("One PATCH may change the query and bring it into view, or take it off screen", arguments: changes)
  func withVisibility(_ change: String, _ names: [String]) throws {
    try screen.patch("q", change.dropLast() + #","visible":false}"#)
    try server.set("Employee/4/name", #""D""#)
    #expect(try screen.told().isEmpty)
    try screen.patch("q", #"{"visible":true,"context":"z"}"#)
    let told = try screen.told()
    #expect(told.map(\.name) == ["content"])
    #expect(told.first?.json["context"].text == "z")
    try check(names)
  }

  /// Checks that the cell has these rows, that `GET` shows the same, and that their changes are still sent.
  private func check(_ names: [String]) throws {
    func list() throws -> LiveList { try #require(screen.lists["q"]) }
    #expect(try list().names == names)
    let twin = try CellScreen(server, cells: "{\"t\":\(try query())}")
    _ = try twin.next()
    #expect(try list().values == twin.lists["t"]?.values)
    for number in 1...3 {
      try server.set("Employee/\(number)/salary", "\(number * 17 % 20)")
      try server.set("Department/\(number % 2 + 1)/name", "\"N\(number)\"")
    }
    try screen.told()
    try twin.told()
    #expect(try list().values == twin.lists["t"]?.values)
  }

  private func query() throws -> String {
    guard case .object(var body) = try screen.cell("q") else { return "{}" }
    for name in ["cell", "pending", "told"] { body[name] = nil }
    return Value.object(body).json
  }

  @Test(
    "A PATCH with a mistake changes nothing and tells nothing",
    arguments: [
      (#"{"filter":"salary >"}"#, 400, "malformed-filter"), (#"{"filter":"nope == 1"}"#, 400, "malformed-filter"),
      (#"{"sort":"nope"}"#, 404, "undefined-key"), (#"{"limit":-1}"#, 422, "invalid-value"),
      (#"{"keys":["nope"]}"#, 404, "undefined-key"), (#"{"section":"tags."}"#, 400, "malformed-key-path"),
      (#"{"entity":"Nobody"}"#, 404, "unknown-entity"), (#"{"keyPaths":["name"]}"#, 422, "invalid-value"),
      (#"{"filter":"salary > 1000","object":"Employee/1","entity":"Employee"}"#, 422, "invalid-value"),
    ])
  func mistakes(_ change: String, _ status: Int, _ code: String) throws {
    let before = try screen.cell("q")
    let response = try server.client.send("PATCH", "\(screen.path)/cells/q", body: change)
    #expect(response.status == status, "\(response.text)")
    #expect(response.problem == code)
    #expect(try screen.cell("q") == before)
    #expect(try screen.told().isEmpty)
    try server.set("Employee/1/salary", "1")
    #expect(try screen.told().map(\.name) == ["content"])
  }

  @Test("Sections that are asked for are a content from places of rows to places of sections and rows")
  func sectioned() throws {
    try screen.bind("s", #"{"entity":"Employee","sort":"salary","keys":["salary"]}"#)
    _ = try screen.next()
    try screen.patch("s", #"{"section":"department.name"}"#)
    let content = try screen.stream.next()
    #expect(content.name == "content")
    #expect(content.json["changes"].items.allSatisfy { $0["type"].text == "move" })
    #expect(content.json["changes"].items.map { $0["index"].json } == ["2", "3", "4", "0", "1"])
    #expect(
      content.json["changes"].items.map { $0["newIndex"].json } == ["[0,0]", "[1,0]", "[1,1]", "[2,0]", "[2,1]"])
    #expect(content.json["sectionChanges"].items.map { $0["name"].json } == ["null", #""Engines""#, #""Looms""#])
  }

  @Test("One section key path is changed for another")
  func otherSections() throws {
    try screen.bind("q", #"{"entity":"Employee","section":"department.name","keys":["salary"]}"#)
    try screen.patch("q", #"{"section":"name"}"#)
    #expect(try screen.told().map(\.name) == ["results", "content"])
    try check((1...4).map { "Employee/\($0)" } + ["Manager/5"])
  }

  @Test("Changing nothing tells nothing")
  func nothing() throws {
    for change in ["{}", #"{"sort":"salary"}"#, #"{"limit":null}"#, #"{"entity":"Employee"}"#] {
      try screen.patch("q", change)
    }
    #expect(try screen.told().isEmpty)
  }
}
