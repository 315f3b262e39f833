import KeyValueModel
import KeywayServer
import TestKit
import Testing

@Suite("Cells that show live queries")
struct QueryCellTests {
  let server: TestServer
  let screen: CellScreen
  static let rich = #"{"entity":"Employee","filter":"salary > 10","sort":"-salary","keys":["salary"],"context":"x"}"#

  init() throws {
    server = try Staff.server()
    screen = try CellScreen(server)
  }

  @Test("A query cell is told results with its name and context, and then contents")
  func results() throws {
    try screen.bind("q", Self.rich)
    let results = try screen.next()
    let revision = try server.revision
    let rows = [("Employee/1", 3, 30), ("Employee/3", 5, 20), ("Employee/4", 6, 15), ("Manager/5", 7, 12)]
    let objects = rows.map { #"{"@ref":"\#($0.0)","@revision":\#($0.1),"salary":\#($0.2)}"# }.joined(separator: ",")
    #expect(
      results.text == """
        id: \(server.epoch)-\(revision)
        event: results
        data: {"revision":\(revision),"initial":true,"cell":"q","context":"x","count":4,"total":4,\
        "objects":[\(objects)]}
        """)
    try server.set("Employee/1/salary", "1", ["Keyway-Writer": "w"])
    let change = #"{"type":"delete","object":"Employee/1","index":0,"reason":"left"}"#
    #expect(
      try screen.next().text == """
        id: \(server.epoch)-\(revision + 1)
        event: content
        data: {"revision":\(revision + 1),"writer":"w","cell":"q","context":"x","count":3,"total":3,\
        "changes":[\(change)]}
        """)
    let cell = try screen.cell("q")
    #expect(cell["told"].whole == 2)
    #expect(cell["pending"].whole == 0)
    #expect(
      cell.names == [
        "cell", "entity", "filter", "sort", "section", "limit", "aggregate", "keys", "visible", "context", "pending",
        "told",
      ])
  }

  @Test("The events of one commit are change, content, gone, and only the last has an id")
  func order() throws {
    try screen.bind("a", #"{"object":"Employee/3","keyPaths":["salary"]}"#)
    try screen.bind("b", #"{"object":"Employee/1","keyPaths":["salary"]}"#)
    try screen.bind("c", #"{"object":"Employee/1","keyPaths":["name"]}"#)
    try screen.bind("q2", Self.rich)
    try screen.bind("q1", #"{"entity":"Employee","limit":1}"#)
    try screen.told()
    try server.commit(
      #"{"op":"set","object":"Employee/3","keyPath":"salary","value":21}"#, #"{"op":"delete","object":"Employee/1"}"#)
    let events = try (0..<5).map { _ in try screen.next() }
    #expect(events.map(\.name) == ["change", "content", "content", "gone", "gone"])
    #expect(events.dropFirst().map { $0.json["cell"].text } == ["q1", "q2", "b", "c"])
    #expect(events.map { $0.id != nil } == [false, false, false, false, true])
    #expect(Set(events.map { $0.json["revision"].whole }) == [try server.revision])
    try server.commit(
      #"{"op":"set","object":"Employee/3","keyPath":"salary","value":22}"#)
    let pair = try (0..<2).map { _ in try screen.next() }
    #expect(pair.map(\.name) == ["change", "content"])
    #expect(pair.map { $0.id != nil } == [false, true])
  }

  @Test("The same query again does nothing; written otherwise it is told anew")
  func again() throws {
    for _ in 0..<3 { try screen.bind("q", Self.rich) }
    #expect(try screen.told().map(\.name) == ["results"])
    #expect(try server.client.json("/v1/status")["observations"].whole == 1)
    try screen.bind("q", Self.rich.replacing("\"x\"", with: "\"y\""))
    try screen.bind("q", Self.rich.replacing("> 10", with: ">  10"))
    let told = try screen.told()
    #expect(told.map(\.name) == ["results", "results"])
    #expect(told.map { $0.json["context"].text } == ["y", "x"])
    #expect(try server.client.json("/v1/status")["observations"].whole == 1)
  }

  @Test("A cell goes from an object to a query and back; what it showed before is silent")
  func toAndFro() throws {
    try screen.bind("a", #"{"object":"Employee/1","keyPaths":["salary"],"options":["new","old"],"context":"x"}"#)
    try screen.patch("a", #"{"entity":"Department","keys":["name"]}"#)
    #expect(try screen.told().map(\.name) == ["results"])
    try server.set("Employee/1/salary", "31")
    #expect(try screen.told().isEmpty)
    #expect(try screen.cell("a")["context"].text == "x")
    try screen.patch("a", #"{"object":"Employee/1"}"#)
    try server.set("Department/1/name", #""E""#)
    let told = try screen.told()
    #expect(told.map(\.name) == ["change"])
    #expect(told[0].json.has("initial"))
    #expect(try server.client.json("/v1/status")["observations"].whole == 2)
    try screen.bind("a", #"{"entity":"Department"}"#)
    try screen.bind("a", #"{"object":"Employee/2","keyPaths":["salary"]}"#)
    #expect(try screen.told().map(\.name) == ["results", "change"])
  }

  @Test("Setting the object to null empties a cell of a query too")
  func reuse() throws {
    try screen.bind("q", Self.rich)
    try screen.told()
    let empty = try screen.patch("q", #"{"object":null}"#)
    #expect(empty["object"].isNull)
    #expect(!empty.has("entity"))
    try server.set("Employee/1/salary", "1")
    #expect(try screen.told().isEmpty)
    #expect(try server.client.json("/v1/status")["observations"].whole == 0)
    try screen.patch("q", #"{"entity":"Department"}"#)
    #expect(try screen.told().map(\.name) == ["results"])
  }

  @Test("A cell that is ended is silent, and its query is forgotten")
  func ending() throws {
    try screen.bind("q", Self.rich)
    try screen.bind("p", Self.rich)
    try screen.told()
    try server.client.must("DELETE", "\(screen.path)/cells/q")
    try server.set("Employee/1/salary", "1")
    #expect(try screen.told().map { $0.json["cell"].text } == ["p"])
    #expect(try server.client.send("GET", "\(screen.path)/cells/q").problem == "unknown-cell")
    try server.client.must("DELETE", "\(screen.path)/cells")
    #expect(try server.client.json("/v1/status")["observations"].whole == 0)
    try server.set("Employee/1/salary", "100")
    #expect(try screen.told().isEmpty)
  }

  @Test("All cells are set at once: queries stay, come and go, told as one revision")
  func allAtOnce() throws {
    try screen.bind("kept", Self.rich)
    try screen.bind("lost", #"{"entity":"Department"}"#)
    try screen.told()
    let all = """
      {"cells":{"kept":\(Self.rich),"a":{"object":"Employee/1","keyPaths":["salary"]},
      "n":{"entity":"Department","keys":["name"]},"m":{"entity":"Department","limit":1,"visible":false}}}
      """
    try server.client.must("PUT", "\(screen.path)/cells", body: all)
    let events = try (0..<2).map { _ in try screen.next() }
    #expect(events.map(\.name) == ["change", "results"])
    #expect(events.map { $0.id != nil } == [false, true])
    #expect(events[1].json["cell"].text == "n")
    #expect(try server.client.json("/v1/status")["observations"].whole == 4)
    let wrong = try server.client.send(
      "PUT", "\(screen.path)/cells", body: #"{"cells":{"a":{"entity":"Employee"},"b":{"entity":"Nobody"}}}"#)
    #expect(wrong.problem == "unknown-entity")
    #expect(try server.client.json("\(screen.path)/cells")["cells"].names == ["a", "kept", "m", "n"])
    #expect(try server.client.json("/v1/status")["observations"].whole == 4)
    #expect(try screen.told().isEmpty)
  }

  @Test("POST binds query cells beside others, told in one revision after open")
  func post() throws {
    let cells = #"{"a":{"object":"Employee/1"},"p":{"entity":"Department"},"q":\#(Self.rich)}"#
    let posted = try CellScreen(server, cells: cells)
    let events = try (0..<3).map { _ in try posted.next() }
    #expect(events.map(\.name) == ["change", "results", "results"])
    #expect(events.map { $0.id != nil } == [false, false, true])
    #expect(posted.lists["q"]?.names == ["Employee/1", "Employee/3", "Employee/4", "Manager/5"])
    #expect(posted.lists["p"]?.names == ["Department/1", "Department/2"])
    #expect(try server.client.json(posted.path)["observations"].whole == 4)
  }
}
