import KeyValueModel
import KeyValueObserving
import Testing

@Suite("What an invisible cell remembers")
struct PendingChangesTests {
  var bench: Bench
  var pending = PendingChanges()

  init() throws {
    bench = try Bench(
      "entities: {A: {keys: {x: {type: integer}, y: {type: integer}, z: {type: integer}}}}",
      "create A/1 {\"x\":1,\"y\":1,\"z\":1}")
  }

  private mutating func apply(_ operations: String...) throws {
    guard let event = try bench.apply(operations)[1] else { return }
    pending.absorb(event.changes, gone: event.gone.first?.object)
  }

  private func coalesced(_ paths: String..., options: ObservingOptions = [.old, .new]) throws -> [String] {
    let observations = try paths.map { try bench.observation("A/1", $0, options) }
    return pending.coalesced(observations, cell: "c", in: bench.model.state).map(line)
  }

  @Test("Many changes become one for each path, with the first old and the present new")
  mutating func coalescing() throws {
    try bench.observe("A/1.x", "A/1.y", "A/1.z", options: [.old, .new, .prior])
    try apply("set A/1 x 2", "set A/1 x 3")
    try apply("set A/1 y 5")
    try apply("set A/1 x 4")
    #expect(pending.commits == 3)
    #expect(
      try coalesced("y", "x", "z") == ["[c] A/1.y old=1 new=5 coalesced=1", "[c] A/1.x old=1 new=4 coalesced=3"])
    #expect(try coalesced("x", options: []) == ["[c] A/1.x old=1 coalesced=3"])
  }

  @Test("A path that a cell names twice is told twice, and counts its changes once")
  mutating func twice() throws {
    try bench.observe("A/1.x", "A/1.x")
    try apply("set A/1 x 2", "set A/1 x 3")
    let line = "[c] A/1.x old=1 new=3 coalesced=2"
    #expect(try coalesced("x", "x") == [line, line])
  }

  @Test("Nothing is pending of an object that is gone but that it is gone")
  mutating func gone() throws {
    try bench.observe("A/1.x")
    try apply("set A/1 x 2")
    try apply("delete A/1")
    #expect(pending.gone?.text == "A/1")
    #expect(pending.commits == 2)
    _ = try bench.apply(["create A/1"])
    #expect(try coalesced("x") == [])
  }
}
