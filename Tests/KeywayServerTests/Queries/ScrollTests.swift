import KeyValueModel
import KeywayClient
import KeywayServer
import Store
import TestKit
import Testing

@Suite("A screen that is scrolled over many objects")
struct ScrollTests {
  private static let schema = """
    entities:
      Item:
        keys:
          price: { type: integer }
          group: { type: integer }
    """

  /// Makes a server with so many objects, created in few commits.
  private func server(objects count: Int) throws -> TestServer {
    let server = try TestServer(schema: Self.schema, objects: [])
    for start in stride(from: 0, to: count, by: 500) {
      let operations = (start..<start + 500).map {
        #"{"op":"create","object":"Item/\#($0)","value":{"price":\#($0),"group":\#($0 % 40)}}"#
      }
      try server.client.must(
        "POST", "/v1/transactions", body: "{\"operations\":[\(operations.joined(separator: ","))]}")
    }
    return server
  }

  @Test("Exactly the changes of what is shown arrive, once each, while cells are bound, hidden and shown")
  func objects() throws {
    var random = SplitMix64(seed: seed)
    let server = try server(objects: 10_000)
    let screen = try CellScreen(server)
    screen.markedObject = "Item/mark"
    try server.client.must("PUT", "/v1/objects/Item/mark", body: "{}")
    var model = ScrolledScreen(objects: 10_000)
    for _ in 0..<50 { try model.scroll(screen, &random) }
    for step in 0..<800 {
      switch Int.random(in: 0..<4, using: &random) {
      case 0: try model.scroll(screen, &random)
      case 1: try model.toggle(screen, &random)
      default: try model.write(server, &random)
      }
      guard step % 100 == 99 else { continue }
      #expect(try screen.told().flatMap(model.told(by:)) == model.takeExpected(), "seed \(seed), step \(step)")
      #expect(try server.client.json("/v1/status")["observations"].whole == model.boundCount, "seed \(seed)")
      #expect(try server.client.json("/v1/status")["cells"].whole == model.boundCount, "seed \(seed)")
      #expect(try server.client.json(screen.path)["observations"].whole == model.boundCount, "seed \(seed)")
    }
    for (cell, object) in model.shown {
      let value = try server.client.json("/v1/objects/\(object)/price")
      #expect(screen.values[cell]?["price"] == value, "seed \(seed), \(cell) shows \(object)")
    }
    screen.stream.socket.close()
    #expect(try Deadline().awaits { try server.client.json("/v1/status")["observations"].whole == 0 })
  }

  @Test("Cells that are live queries scroll too: each shows the first twenty of its group")
  func queries() throws {
    var random = SplitMix64(seed: seed)
    let server = try server(objects: 2000)
    let screen = try CellScreen(server)
    screen.markedObject = "Item/mark"
    try server.client.must("PUT", "/v1/objects/Item/mark", body: "{}")
    var groups: [Int: (group: Int, isVisible: Bool)] = [:]
    for step in 0..<500 {
      let cell = Int.random(in: 0..<10, using: &random)
      let group = Int.random(in: 0..<40, using: &random)
      switch (Int.random(in: 0..<6, using: &random), groups[cell]) {
      case (0, let present?):
        try screen.patch("q\(cell)", "{\"visible\":\(!present.isVisible)}")
        groups[cell] = (present.group, !present.isVisible)
      case (1, let present?):
        try screen.patch("q\(cell)", "{\"filter\":\"group == \(group)\"}")
        groups[cell] = (group, present.isVisible)
      case (2, _), (_, nil):
        let query = #"{"entity":"Item","filter":"group == \#(group)","sort":"-price","limit":20,"keys":["price"]}"#
        try screen.bind("q\(cell)", query)
        groups[cell] = (group, true)
      case (_, let present?):
        let item = Int.random(in: 0..<50, using: &random) * 40 + present.group
        let price = Int.random(in: 0..<20_000, using: &random)
        try server.client.must(
          "PATCH", "/v1/objects/Item/\(item)", ["Content-Type": "application/merge-patch+json"],
          body: #"{"price":\#(price),"group":\#(price % 3 == 0 ? group : present.group)}"#)
      }
      guard step % 125 == 124 else { continue }
      try screen.told()
      #expect(try server.client.json(screen.path)["observations"].whole == groups.count)
      #expect(server.openQueries == Set(groups.values.map(\.group)).count)
      for (cell, shows) in groups where shows.isVisible {
        let target = Staff.target(
          "Item", ["filter": "group == \(shows.group)", "sort": "-price", "limit": "20", "keys": "price"])
        let fetched = try server.client.json(target)["objects"].items.map(\.withoutRevision)
        #expect(screen.lists["q\(cell)"]?.values == fetched, "seed \(seed), step \(step), q\(cell)")
      }
    }
  }
}
