import KeyValueModel
import KeywayClient
import TestKit
import Testing

/// A client with a stream of cells, which it binds, hides and shows at random. It applies the events that it receives.
final class SoakClient {
  let screen: CellScreen
  private let server: TestServer
  private var world: StaffWriter
  private var cells: [String: (shows: SoakCell, isVisible: Bool)] = [:]

  /// Creates a client. A slow one has a small receive buffer.
  init(_ server: TestServer, isSlow: Bool = false) throws {
    self.server = server
    world = StaffWriter(server)
    screen = try CellScreen(server, receiveBufferBytes: isSlow ? 32_768 : nil)
    screen.markedObject = "Department/mark"
  }

  /// Does one random action.
  func act(_ random: inout SplitMix64) throws {
    let name = "c\(Int.random(in: 0..<6, using: &random))"
    switch (Int.random(in: 0..<9, using: &random), cells[name]) {
    case (0...2, let (shows, isVisible)?):
      try screen.patch(name, "{\"visible\":\(!isVisible)}")
      cells[name] = (shows, !isVisible)
    case (3, let (.query, isVisible)?):
      try requery(name, isVisible || Bool.random(using: &random), &random)
    case (7, _): try comeBack(&random)
    case (4, _?) where Int.random(in: 0..<3, using: &random) == 0:
      try server.client.must("DELETE", "\(screen.path)/cells/\(name)")
      cells[name] = nil
    default: try bind(name, &random)
    }
  }

  private func bind(_ name: String, _ random: inout SplitMix64) throws {
    let objects = try server.client.json("/v1/objects?limit=100")["objects"].items.compactMap { $0["@ref"].text }
    let shows = SoakCell.random(of: objects, &random)
    let isVisible = Int.random(in: 0..<3, using: &random) > 0
    try screen.bind(name, shows.body(visible: isVisible))
    cells[name] = (shows, isVisible)
  }

  private func requery(_ name: String, _ isVisible: Bool, _ random: inout SplitMix64) throws {
    guard let present = cells[name] else { return }
    let shows = SoakCell.query(SoakCell.query(&random, isSectioned: present.shows.isSectioned))
    try screen.patch(name, shows.body(visible: isVisible))
    cells[name] = (shows, isVisible)
  }

  /// Loses the connection while others write, and reconnects. Cells on screen continue from the cursor. The server
  /// cannot know the contents of cells off screen, so these are bound again.
  private func comeBack(_ random: inout SplitMix64) throws {
    try screen.told()
    var kept: [String] = []
    var others: [String] = []
    for name in cells.keys.sorted() {
      guard let cell = cells[name] else { continue }
      if case .object(let object, _) = cell.shows {
        if try screen.cell(name)["object"].isNull || !exists(object) {
          // A client that knows that the object is gone does not bind it again.
          cells[name] = nil
          continue
        }
      }
      if cell.isVisible { kept.append(name) } else { others.append(name) }
    }
    for _ in 0..<Int.random(in: 0..<6, using: &random) { try world.write(&random) }
    let bodies = kept.compactMap { name in cells[name].map { "\"\(name)\":\($0.shows.body(visible: true))" } }
    try screen.reconnect(cells: "{\(bodies.joined(separator: ","))}")
    for name in others {
      guard let cell = cells[name] else { continue }
      if case .object(let object, _) = cell.shows, try !exists(object) {
        cells[name] = nil
      } else {
        try screen.bind(name, cell.shows.body(visible: false))
      }
    }
  }

  private func exists(_ object: String) throws -> Bool {
    try server.client.send("GET", "/v1/objects/\(object)").status == 200
  }

  /// Applies all events, and checks that the cells on screen show the same as a new stream with the same cells.
  func check(_ comment: @autoclosure () -> String) throws {
    try screen.told()
    for (name, cell) in cells where cell.isVisible {
      let comment = "\(comment()), \(name)"
      switch cell.shows {
      case .empty: break
      case .query:
        let fresh = try CellScreen(server, cells: "{\"\(name)\":\(cell.shows.body(visible: true))}")
        _ = try fresh.next()
        let list = try #require(screen.lists[name], "\(comment)")
        let expected = try #require(fresh.lists[name])
        #expect(list.values == expected.values, "\(comment)")
        #expect(list.sections.map(\.name) == expected.sections.map(\.name), "\(comment)")
        #expect(list.sections.map(\.count) == expected.sections.map(\.count), "\(comment)")
        try checkFetch(list.values, cell.shows, comment)
      case .object(let object, let keyPaths):
        guard try exists(object) else {
          #expect(try screen.cell(name)["object"].isNull, "\(comment)")
          #expect(screen.gone.contains(name), "\(comment)")
          continue
        }
        // The object may have been deleted and created again: then the cell is empty.
        if try screen.cell(name)["object"].isNull { continue }
        for keyPath in keyPaths {
          let value = try server.client.json("/v1/objects/\(object)/\(keyPath)")
          #expect(screen.values[name]?[keyPath] == value, "\(comment), \(object)/\(keyPath)")
        }
      }
    }
  }

  /// Checks that the rows of a query without sections are those of a fetch, in its order.
  private func checkFetch(_ rows: [Value], _ shows: SoakCell, _ comment: String) throws {
    guard case .query(let members) = shows, !shows.isSectioned else { return }
    var parameters: [String] = []
    for (name, value) in members.dropFirst() {
      switch value {
      case .string(let text): parameters.append("\(name)=\(Staff.encoded(text))")
      case .integer(let number): parameters.append("\(name)=\(number)")
      case .array: parameters.append("\(name)=name")
      default: break
      }
    }
    let fetched = try server.client.json("/v1/objects/Employee?\(parameters.joined(separator: "&"))")
    #expect(fetched["objects"].items.map(\.withoutRevision) == rows, "\(comment)")
  }
}
