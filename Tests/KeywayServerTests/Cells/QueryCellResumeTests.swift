import KeyValueModel
import KeywayServer
import TestKit
import Testing

@Suite("Coming back to a stream with query cells")
struct QueryCellResumeTests {
  private static let cells = """
    {"a":{"object":"Employee/1","keyPaths":["salary","department.name"],"options":["old","new"],"context":"x"},
    "b":{"object":"Department/1","keyPaths":["employees","total"]},
    "p":{"entity":"Employee","filter":"salary > 10","sort":"-salary","limit":4,"context":"y"},
    "q":{"entity":"Employee","section":"department.name","keys":["name"]},
    "r":{"entity":"Employee","filter":"salary > 10","sort":"-salary","limit":4}}
    """

  @Test("A client that resumes with any id gets byte for byte what an unbroken stream got", arguments: [true, false])
  func resumeEqualsUnbroken(_ isWatched: Bool) throws {
    var random = SplitMix64(seed: seed)
    let server = try Staff.server()
    let unbroken = try CellScreen(server, cells: Self.cells)
    let start = try server.revision
    _ = try (0..<4).map { _ in try unbroken.next() }
    var world = StaffWriter(server)
    world.keeps = ["Employee/1", "Department/1"]
    for _ in 0..<40 { try world.write(&random) }
    try server.client.must("PUT", "/v1/objects/Employee/end", body: #"{"salary":1000}"#)
    try server.client.must("DELETE", "/v1/objects/Employee/1")
    let end = try server.revision
    let events = try unbroken.stream.events { $0.json["revision"].whole == end && $0.id != nil }
    #expect(events.last?.name == "gone")
    if !isWatched {
      unbroken.stream.socket.close()
      #expect(Deadline().awaits { server.openQueries == 0 })
    }
    for since in start..<end {
      let expected = events.filter { ($0.json["revision"].whole ?? 0) > since }
      let resumed = try CellScreen(server, cells: Self.cells, since: "\(server.epoch)-\(since)")
      #expect(try expected.map { _ in try resumed.stream.next() } == expected, "seed \(seed), since \(since)")
      resumed.stream.socket.close()
    }
  }

  @Test("Cells that come back hidden are told the state when they are seen, whatever they had shown, or what they lost")
  func hidden() throws {
    let server = try Staff.server()
    let cursor = "\(server.epoch)-\(try server.revision)"
    try server.set("Employee/1/salary", "1")
    try server.set("Employee/2/salary", "50")
    try server.client.must("DELETE", "/v1/objects/Employee/3")
    let cells = """
      {"a":{"object":"Employee/3","visible":false},
      "q":{"entity":"Employee","filter":"salary > 10","sort":"-salary","keys":["salary"],"visible":false}}
      """
    let screen = try CellScreen(server, cells: cells, since: cursor)
    #expect(try screen.told().isEmpty)
    try server.set("Employee/4/salary", "60")
    try screen.patch("q", #"{"visible":true}"#)
    try screen.patch("a", #"{"visible":true}"#)
    let results = try screen.stream.next()
    #expect(results.name == "results")
    #expect(results.json["initial"] == .bool(true))
    #expect(results.json["objects"].items.map { $0["@ref"].text } == ["Employee/4", "Employee/2", "Manager/5"])
    #expect(try screen.stream.next().name == "gone")
  }

  @Test("A cursor of no use resets all cells: results and initial changes follow, hidden cells later")
  func reset() throws {
    let server = try Staff.server()
    let cells = """
      {"a":{"object":"Employee/1"},"h":{"entity":"Department","visible":false},"q":{"entity":"Department"}}
      """
    let screen = try CellScreen(server, cells: cells, since: "zzzz-1")
    let told = try screen.told()
    #expect(told.map(\.name) == ["reset", "change", "results"])
    #expect(told.last?.json["cell"].text == "q")
    try screen.patch("h", #"{"visible":true}"#)
    #expect(try screen.told().map(\.name) == ["results"])
    #expect(screen.lists["h"]?.values == screen.lists["q"]?.values)
  }
}
