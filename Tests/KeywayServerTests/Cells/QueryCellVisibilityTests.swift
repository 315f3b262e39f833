import KeyValueModel
import KeywayServer
import TestKit
import Testing

@Suite("Query cells on and off screen")
struct QueryCellVisibilityTests {
  let server: TestServer
  let screen: CellScreen
  private static let query = #"{"entity":"Employee","filter":"salary > 10","sort":"-salary","keys":["salary"]}"#

  init() throws {
    server = try Staff.server()
    screen = try CellScreen(server)
  }

  private func hide(_ cell: String) throws { try screen.patch(cell, #"{"visible":false}"#) }
  private func show(_ cell: String) throws { try screen.patch(cell, #"{"visible":true}"#) }

  @Test("Off screen it is told nothing and counts what is pending; back it is told one content from what it has")
  func coalesced() throws {
    try screen.bind("q", Self.query)
    try screen.told()
    try hide("q")
    try server.set("Employee/1/salary", "13")
    try server.set("Employee/2/salary", "40")
    try server.client.must("DELETE", "/v1/objects/Employee/3")
    try server.client.must("PUT", "/v1/objects/Employee/9", body: #"{"salary":14}"#)
    try server.set("Employee/9/name", #""unseen""#)
    #expect(try screen.told().isEmpty)
    #expect(try screen.cell("q")["pending"].whole == 4)
    try show("q")
    let told = try screen.told()
    #expect(told.map(\.name) == ["content"])
    #expect(told[0].json["coalesced"].whole == 4)
    #expect(told[0].id != nil)
    #expect(
      told[0].json["changes"].items.map { $0["reason"].text } == ["deleted", nil, "entered", "created"])
    #expect(screen.lists["q"]?.names == ["Employee/2", "Employee/4", "Employee/9", "Employee/1", "Manager/5"])
    #expect(try screen.cell("q")["pending"].whole == 0)
    #expect(try screen.cell("q")["told"].whole == 2)
    try server.set("Employee/1/salary", "50")
    #expect(try screen.told().map { $0.json.has("coalesced") } == [false])
  }

  @Test("Coming back after nothing happened tells nothing")
  func nothing() throws {
    try screen.bind("q", Self.query)
    try screen.told()
    for _ in 0..<3 {
      try hide("q")
      try server.set("Employee/2/salary", "1")
      try show("q")
    }
    #expect(try screen.told().isEmpty)
  }

  @Test("Coming back after commits that undo each other tells nothing")
  func undone() throws {
    try screen.bind("q", Self.query)
    try screen.told()
    try hide("q")
    try server.client.must("PUT", "/v1/objects/Employee/9", body: #"{"salary":14}"#)
    try server.client.must("DELETE", "/v1/objects/Employee/9")
    #expect(try screen.cell("q")["pending"].whole == 2)
    try show("q")
    #expect(try screen.told().isEmpty)
    #expect(try screen.cell("q")["pending"].whole == 0)
  }

  @Test("Any number of missed changes comes as one content")
  func much() throws {
    let rows = 10..<250
    func commit(_ operation: (Int) -> String) throws {
      let operations = rows.map(operation).joined(separator: ",")
      try server.client.must("POST", "/v1/transactions", body: #"{"operations":[\#(operations)]}"#)
    }
    try commit { #"{"op":"create","object":"Employee/\#($0)","value":{"salary":\#($0 + 100)}}"# }
    try screen.bind("q", Self.query)
    try screen.told()
    try hide("q")
    try commit { #"{"op":"delete","object":"Employee/\#($0)"}"# }
    try show("q")
    let told = try screen.told()
    #expect(told.map(\.name) == ["content"])
    #expect(told[0].json["changes"].items.count == rows.count)
  }

  @Test("Bound off screen it is told results when it comes into view, the state of then")
  func boundInvisible() throws {
    try screen.bind("q", Self.query.dropLast() + #","visible":false}"#)
    try server.set("Employee/1/salary", "13")
    try server.set("Employee/1/salary", "14")
    #expect(try screen.told().isEmpty)
    try show("q")
    let told = try screen.told()
    #expect(told.map(\.name) == ["results"])
    #expect(told[0].json["initial"] == .bool(true))
    #expect(screen.lists["q"]?.names == ["Employee/3", "Employee/4", "Employee/1", "Manager/5"])
  }

  @Test("One commit tells the cells on screen and leaves those off screen to remember it")
  func besides() throws {
    for cell in ["p", "q", "r"] { try screen.bind(cell, Self.query) }
    try screen.bind("a", #"{"object":"Employee/1","keyPaths":["salary"]}"#)
    try screen.told()
    for cell in ["a", "q"] { try hide(cell) }
    try server.set("Employee/1/salary", "14")
    #expect(try screen.told().map { $0.json["cell"].text } == ["p", "r"])
    try show("q")
    try show("a")
    let told = try screen.told()
    #expect(told.map(\.name) == ["content", "change"])
    #expect(screen.lists["q"]?.values == screen.lists["p"]?.values)
  }

  @Test("A cell that lost its object off screen is told so whatever else changes before it is seen again")
  func goneOffScreen() throws {
    try screen.bind("a", #"{"object":"Employee/1"}"#)
    try screen.bind("b", #"{"object":"Employee/1"}"#)
    try screen.told()
    try hide("a")
    try hide("b")
    try server.client.must("DELETE", "/v1/objects/Employee/1")
    #expect(try screen.told().isEmpty)
    try screen.patch("a", #"{"context":"x"}"#)
    try screen.patch("a", #"{"visible":true}"#)
    try screen.patch("b", #"{"context":"x","visible":true}"#)
    let told = try screen.told()
    #expect(told.map(\.name) == ["gone", "gone"])
    #expect(screen.gone == ["a", "b"])
    for cell in ["a", "b"] {
      #expect(try screen.cell(cell)["object"].isNull)
      #expect(try screen.cell(cell)["pending"].whole == 0)
    }
  }

  @Test("A cell that lost its object off screen and shows something else by now is not told so")
  func goneAndReused() throws {
    try screen.bind("a", #"{"object":"Employee/1"}"#)
    try screen.told()
    try hide("a")
    try server.client.must("DELETE", "/v1/objects/Employee/1")
    try screen.patch("a", #"{"entity":"Department"}"#)
    try show("a")
    #expect(try screen.told().map(\.name) == ["results"])
  }
}
