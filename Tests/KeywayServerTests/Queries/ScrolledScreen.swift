import KeyValueModel
import TestKit

/// The model of a screen with cells: the object that each shows, and the expected events of its stream.
struct ScrolledScreen {
  private struct Cell {
    var object: Int
    var isVisible = true
    /// True if it has not received its object yet.
    var isNew = false
    /// The number of writes of its object since it was hidden.
    var missed = 0
  }

  private static let cellCount = 50

  private let objects: Int
  private var cells: [Int: Cell] = [:]
  private var prices: [Int: Int] = [:]
  private var expected: [String] = []

  /// Creates a screen over objects numbered below `objects`, whose first price is their number.
  init(objects: Int) {
    self.objects = objects
  }

  /// The number of cells that show an object, on screen or off.
  var boundCount: Int { cells.count }

  /// The cells on screen with their objects.
  var shown: [(cell: String, object: String)] {
    cells.filter(\.value.isVisible).map { ("c\($0.key)", "Item/\($0.value.object)") }
  }

  /// Returns the expected changes since the last call, in order; the cells of one event by name.
  mutating func takeExpected() -> [String] {
    defer { expected = [] }
    return expected
  }

  /// Returns the changes of an event, in the form of `takeExpected`.
  func told(by event: WireEvent) -> [String] {
    let sort = event.json.has("initial") ? "initial" : "change"
    return event.changes.map { change in
      let coalesced = change["coalesced"].whole.map { " of \($0)" } ?? ""
      return "\(sort) \(change["cell"].text ?? "") \(change["object"].text ?? "") \(change["new"].json)\(coalesced)"
    }.sorted()
  }

  /// Binds a random cell to a random object, sometimes to the one that it already shows.
  mutating func scroll(_ screen: CellScreen, _ random: inout SplitMix64) throws {
    let number = Int.random(in: 0..<Self.cellCount, using: &random)
    var cell = Cell(object: Int.random(in: 0..<objects, using: &random))
    if let present = cells[number], Int.random(in: 0..<4, using: &random) == 0 { cell.object = present.object }
    cell.isVisible = Int.random(in: 0..<4, using: &random) > 0
    try screen.bind(
      "c\(number)", #"{"object":"Item/\#(cell.object)","keyPaths":["price"],"visible":\#(cell.isVisible)}"#)
    if let present = cells[number], present.object == cell.object { return setVisible(cell.isVisible, number) }
    cell.isNew = true
    cells[number] = cell
    tellWhatIsOwed(number)
  }

  /// Hides or shows a random cell.
  mutating func toggle(_ screen: CellScreen, _ random: inout SplitMix64) throws {
    guard let number = cells.keys.sorted().randomElement(using: &random), let cell = cells[number] else { return }
    try screen.patch("c\(number)", "{\"visible\":\(!cell.isVisible)}")
    setVisible(!cell.isVisible, number)
  }

  /// Writes random objects in one commit, most of them shown by cells.
  mutating func write(_ server: TestServer, _ random: inout SplitMix64) throws {
    var written: [Int: Int] = [:]
    for _ in 0..<Int.random(in: 1...4, using: &random) {
      let bound = cells.values.map(\.object).sorted().randomElement(using: &random)
      let object = Int.random(in: 0..<5, using: &random) == 0 ? nil : bound
      written[object ?? Int.random(in: 0..<objects, using: &random)] = Int.random(in: 0..<1000, using: &random)
    }
    let operations = written.map { #"{"op":"set","object":"Item/\#($0)","keyPath":"price","value":\#($1)}"# }
    try server.client.must("POST", "/v1/transactions", body: "{\"operations\":[\(operations.joined(separator: ","))]}")
    var told: [String] = []
    for (number, cell) in cells {
      guard let price = written[cell.object] else { continue }
      if cell.isVisible {
        told.append("change c\(number) Item/\(cell.object) \(price)")
      } else {
        cells[number]?.missed += 1
      }
    }
    expected += told.sorted()
    prices.merge(written) { $1 }
  }

  private mutating func setVisible(_ isVisible: Bool, _ number: Int) {
    cells[number]?.isVisible = isVisible
    tellWhatIsOwed(number)
  }

  private mutating func tellWhatIsOwed(_ number: Int) {
    guard let cell = cells[number], cell.isVisible else { return }
    let price = prices[cell.object] ?? cell.object
    if cell.isNew {
      expected.append("initial c\(number) Item/\(cell.object) \(price)")
    } else if cell.missed > 0 {
      expected.append("change c\(number) Item/\(cell.object) \(price) of \(cell.missed)")
    }
    cells[number]?.isNew = false
    cells[number]?.missed = 0
  }
}
