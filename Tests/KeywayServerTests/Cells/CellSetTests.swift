import KeyValueModel
import KeyValueObserving
import Testing

@testable import KeywayServer

@Suite("Streams of slow readers")
struct CellSetTests {
  private var model: Model
  private var index = ObserverIndex()
  private var cells = CellSet()
  private let observer = ObserverID(1)

  init() throws {
    model = Model(schema: try Schema(yaml: "entities: {A: {keys: {x: {type: integer}, l: {toMany: integer}}}}"))
    for id in ["1", "2"] {
      let body: JSONObject = ["x": .integer(1), "l": .array((1...4).map(Value.integer))]
      _ = try model.commit(Transaction([.create(try reference("A/\(id)"), body)]))
    }
    try bind("a", "A/1")
    try bind("b", "A/2")
    try bind("off", "A/1", isVisible: false)
  }

  private let encoder = EventEncoder(epoch: "test")

  private var present: DeliveredState { DeliveredState(reader: model.state, revision: model.revision) { _ in nil } }

  private func reference(_ text: String) throws -> Reference { try #require(Reference(text)) }

  private mutating func bind(_ name: String, _ object: String, isVisible: Bool = true) throws {
    let body: JSONObject = ["object": .string(object), "visible": .bool(isVisible)]
    let reference = try reference(object)
    let entity = try model.state.requireRecord(reference).entity
    let observations = try ["x", "l"].map { path in
      let keyPath = try model.schema.resolveObservable(path, from: entity)
      return Observation(object: reference, keyPath: keyPath, options: [.old, .new])
    }
    var cell = Cell(binding: try CellBinding(.object(body), for: nil), observations: observations)
    if !isVisible { cell.pause(at: present) }
    cells[name] = cell
    index.add(observations, of: observer, cell: name, in: model.state)
  }

  /// Commits one operation. Returns the events that the stream receives at once.
  @discardableResult
  private mutating func commit(_ operation: KeyValueModel.Operation) throws -> [String] {
    let commit = try model.commit(Transaction([operation]))
    var told: [String] = []
    index.notify(CollectionOfOne(commit), of: model.state) { event in
      guard let visible = cells.visiblePart(of: StreamEvent(event)) else { return }
      told = visible.changes.map(Self.line) + visible.gone.map { "\($0.cell ?? "") gone" }
    }
    return told
  }

  private static func line(_ change: Change) -> String {
    let merged = change.coalesced.map { " \($0)" } ?? ""
    let (old, new) = (change.old.map { " old \($0.json)" } ?? "", change.new.map { " new \($0.json)" } ?? "")
    return "\(change.cell ?? "") \(change.observation.keyPath.text) \(change.kind)\(old)\(new)\(merged)"
  }

  private mutating func catchUp() -> [String] {
    let update = cells.catchUp(to: present, encoder)
    return update.initial.map { "initial \(Self.line($0))" } + update.coalesced.map(Self.line)
      + update.gone.map { "\($0.cell ?? "") gone" }
  }

  @Test("A suspended stream is told nothing, and when it catches up what its visible cells missed")
  mutating func suspending() throws {
    let object = try reference("A/1")
    cells.suspend(at: present)
    #expect(try commit(.set(object, keyPath: "x", .integer(2))).isEmpty)
    #expect(try commit(.insert(object, keyPath: "l", [.value(.integer(5))], at: nil)).isEmpty)
    #expect(try commit(.set(object, keyPath: "x", .integer(3))).isEmpty)
    let cell = try #require(cells["a"]?.described(as: "a"))
    #expect(cell["pending"] == .integer(3))
    #expect(cell["visible"] == .bool(true))
    #expect(catchUp() == ["a x setting old 1 new 3 2", "a l insertion new [5] 1"])
    #expect(cells["a"]?.pending == nil)
    #expect(cells["off"]?.pending?.commits == 3)
    #expect(try commit(.set(object, keyPath: "x", .integer(4))) == ["a x setting old 3 new 4"])
    #expect(catchUp() == [])
  }

  @Test("A cell that leaves the screen while its stream is suspended remembers from when it was told last")
  mutating func hiddenMeanwhile() throws {
    let object = try reference("A/1")
    cells.suspend(at: present)
    try commit(.set(object, keyPath: "x", .integer(2)))
    cells["a"]?.binding.isVisible = false
    let present = present
    cells["a"]?.pause(at: present)
    #expect(catchUp() == [])
    try commit(.set(object, keyPath: "x", .integer(3)))
    var update = CellUpdate()
    let now = self.present
    cells["a"]?.resume(as: "a", at: now, encoder, &update)
    #expect(update.coalesced.map(Self.line) == ["a x setting old 1 new 3 2"])
  }

  @Test("A cell that is owed its first state is told that, and one that lost its object that it did")
  mutating func firstStateAndEnd() throws {
    cells.suspend(at: present)
    cells["a"]?.isOwedInitial = true
    try commit(.set(try reference("A/1"), keyPath: "x", .integer(2)))
    #expect(try commit(.delete(try reference("A/2"))).isEmpty)
    #expect(catchUp() == ["initial a x setting new 2", "initial a l setting new [1,2,3,4]", "b gone"])
  }

  @Test("Suspending twice forgets nothing")
  mutating func twice() throws {
    cells.suspend(at: present)
    try commit(.set(try reference("A/2"), keyPath: "x", .integer(2)))
    cells.suspend(at: present)
    #expect(catchUp() == ["b x setting old 1 new 2 1"])
  }
}
