import KeyValueModel
import Testing

@testable import KeyValueObserving

@Suite("The budget of a commit")
struct BudgetTests {
  static let schema = """
    entities:
      A:
        keys:
          x: {type: integer}
          calm: {type: integer, notifies: changed}
          b: {toOne: B}
      B: {keys: {y: {type: integer}}}
    """

  var fixture: Fixture

  init() throws {
    fixture = try Fixture(
      Self.schema, "create B/1 {\"y\":1}", "create B/2 {\"y\":2}", "create A/1 {\"x\":0,\"calm\":0,\"b\":\"B/1\"}",
      "create A/2")
  }

  @Test("As many changes as the budget are told, one more and none")
  mutating func edge() throws {
    try fixture.observe("A/1.x", options: [.old, .new, .prior])
    let enough = try fixture.apply(["set A/1 x 1", "set A/1 x 2"], changesPerObserver: 4)[1]
    #expect(enough?.changes.count == 4 && enough?.hasOverflowed == false)
    let tooMany = try fixture.apply(["set A/1 x 1", "set A/1 x 2"], changesPerObserver: 3)[1]
    #expect(tooMany?.changes.isEmpty == true && tooMany?.hasOverflowed == true)
    let none = try fixture.apply(["set A/1 x 1"], changesPerObserver: 0)[1]
    #expect(none?.changes.isEmpty == true && none?.hasOverflowed == true)
    #expect(try fixture.apply(["set A/2 x 1"], changesPerObserver: 0).isEmpty, "who hears nothing is not past anything")
  }

  @Test("Each commit and each observer has a budget of its own")
  mutating func own() throws {
    try fixture.observe("A/1.x", "A/1.x")
    try fixture.observe("A/1.x", observer: 2)
    let first = try fixture.apply(["set A/1 x 1", "set A/1 x 2"], changesPerObserver: 2)
    #expect(first[1]?.hasOverflowed == true && first[2]?.hasOverflowed == false)
    #expect(first[2].map(lines) == ["A/1.x old=0 new=1", "A/1.x old=1 new=2"])
    let second = try fixture.apply(["set A/1 x 3"], changesPerObserver: 2)
    #expect(second[1].map(lines) == ["A/1.x old=2 new=3", "A/1.x old=2 new=3"] && second[1]?.hasOverflowed == false)
    #expect(second[2].map(lines) == ["A/1.x old=2 new=3"])
  }

  @Test("An overflowed observer's paths are followed all the same")
  mutating func paths() throws {
    try fixture.observe("A/1.b.y", "A/1.x", "A/2.b.y")
    // The first link is set before the overflow, the second and the third after it.
    let event = try fixture.apply(
      [
        "set A/1 b null", "set A/1 x 1", "set A/1 x 2", "set A/1 b \"B/1\"", "set A/2 b \"B/1\"", "set B/2 y 5",
        "set A/1 b \"B/2\"",
      ], changesPerObserver: 2)[1]
    #expect(event?.hasOverflowed == true)
    #expect(try fixture.told("set B/1 y 8", "set B/2 y 9") == ["A/2.b.y old=1 new=8", "A/1.b.y old=5 new=9"])
  }

  @Test("An overflowed observer is told of the objects that are gone, and only their observations end")
  mutating func gone() throws {
    try fixture.observe("A/1.x", "A/2.x", "A/1.b.y")
    let event = try fixture.apply(
      ["set A/1 x 1", "set A/1 x 2", "set A/2 x 1", "delete A/2", "delete A/1", "put A/1 {\"x\":7,\"b\":\"B/2\"}"],
      changesPerObserver: 1)[1]
    #expect(event.map(lines) == ["gone A/2"] && event?.hasOverflowed == true)
    #expect(fixture.index.count == 2)
    #expect(try fixture.told("set A/1 x 8", "set B/2 y 3") == ["A/1.x old=7 new=8", "A/1.b.y old=2 new=3"])
  }

  @Test("Overflowing inside a bracket leaves nothing for its end to take back")
  mutating func bracket() throws {
    try fixture.observe("A/1.calm", "A/1.x", options: [.old, .new, .prior])
    try fixture.observe("A/1.calm", observer: 2)
    let events = try fixture.apply(
      ["will A/1 calm", "set A/1 calm 1", "set A/1 x 1", "set A/1 calm 0", "did A/1 calm", "set A/1 calm 4"],
      changesPerObserver: 2)
    #expect(events[1]?.hasOverflowed == true && events[1]?.changes.isEmpty == true)
    #expect(events[2].map(lines) == ["A/1.calm old=0 new=4"])
    #expect(try fixture.told("set A/1 calm 5") == ["A/1.calm prior old=4", "A/1.calm old=4 new=5"])
  }

  @Test("Each commit of a replay has the budget, and is told as it was live")
  mutating func replay() throws {
    try fixture.observe("A/1.x", "A/1.b.y")
    var index = fixture.index
    let start = fixture.commits.count
    var live: [[String]] = []
    for operations in [["set A/1 x 1", "set A/1 x 2", "set A/1 b \"B/2\""], ["set B/2 y 3"], ["set B/1 y 3"]] {
      let events = try fixture.apply(operations, changesPerObserver: 1)
      live += events.values.map { lines($0) + ["\($0.hasOverflowed)"] }
    }
    #expect(live == [["true"], ["A/1.b.y old=2 new=3", "false"]])
    var replayed: [[String]] = []
    index.notify(fixture.commits[start...], of: fixture.model.state, changesPerObserver: 1) {
      replayed.append(lines($0) + ["\($0.hasOverflowed)"])
    }
    #expect(replayed == live)
  }

  @Test("3,000 observations of one key and 2,000 settings of it cost no more than the budget; others hear them all")
  mutating func many() throws {
    let observations = Array(repeating: try fixture.observation("A/1", "x"), count: 3_000)
    fixture.index.add(observations, of: ObserverID(1), in: fixture.model.state)
    try fixture.observe("A/1.x", observer: 2)
    let events = try fixture.apply((1...2_000).map { "set A/1 x \($0)" }, changesPerObserver: 10_000)
    #expect(events[1]?.hasOverflowed == true && events[1]?.changes.isEmpty == true)
    #expect(events[2]?.changes.count == 2_000 && events[2]?.hasOverflowed == false)
    #expect(fixture.index.count == 3_001)
    #expect(try fixture.apply(["set A/1 x 0"], changesPerObserver: 3_000)[1]?.changes.count == 3_000)
  }
}
