import KeyValueModel
import TestKit
import Testing

@testable import KeyValueObserving

@Suite("Commits that set attributes alone")
struct AttributeNoticesTests {
  static let schema = """
    entities:
      A:
        keys:
          x: {type: integer}
          y: {type: string}
          calm: {type: integer, notifies: changed}
          twice: {type: integer, computed: "x + x"}
          b: {toOne: B, inverse: all}
      B:
        keys:
          all: {toMany: A, inverse: b}
          sum: {type: number, computed: "all.@sum.x"}
    """

  var fixture: Fixture

  init() throws {
    fixture = try Fixture(
      Self.schema, "create B/1", #"create A/1 {"x":0,"y":"a","calm":0}"#, #"create A/2 {"x":0,"y":"a","calm":0}"#,
      #"create A/3 {"x":0,"y":"a","calm":0}"#)
  }

  /// Returns true if observers are notified of a commit of these operations by `AttributeNotices`.
  private func isTold(_ lines: String...) throws -> Bool {
    var model = fixture.model
    return AttributeNotices(of: try model.commit(Transaction(try lines.map(operation))), in: fixture.index) != nil
  }

  @Test("Settings of attributes that are observed as such are told in this way, and nothing else is")
  mutating func reach() throws {
    try fixture.observe("A/1.x", "A/2.x", "A/2.y")
    #expect(try isTold("set A/1 x 1"))
    #expect(try isTold("set A/1 x 1", "set A/2 x 1", "set A/3 x 1"))
    #expect(try isTold("set A/1 x 1", #"patch A/2 {"x":1,"y":"b"}"#, "set A/1 x 2"))
    #expect(try !isTold("set A/1 x 1", "create A/4"), "an object comes")
    #expect(try !isTold("set A/1 x 1", "delete A/2"), "an object goes")
    #expect(try !isTold("delete A/1", "create A/1", "set A/1 x 1"), "an object comes anew")
    #expect(try !isTold("set A/1 x 1", #"set A/2 b "B/1""#), "a path may lead elsewhere")
    #expect(try !isTold("will A/1 x", "set A/1 x 1", "did A/1 x"), "a bracket holds notifications back")
    try fixture.observe("A/1.twice", observer: 2)
    #expect(try !isTold("set A/1 x 1", "set A/2 x 1"), "a computed key follows")
    #expect(try isTold("set A/2 x 1", "set A/3 x 1"))
    #expect(try fixture.apply([#"set A/2 b "B/1""#]).isEmpty)
    try fixture.observe("B/1.sum", observer: 3)
    #expect(try !isTold("set A/2 x 1", "set A/3 x 1"), "a fold follows")
    #expect(try isTold("set A/3 x 1", #"set A/2 y "c""#))
  }

  @Test("One observer's changes are one event, in the order of the operations")
  mutating func order() throws {
    try fixture.observe("A/1.x", "A/2.x", "A/2.y", "A/1.calm")
    try fixture.observe("A/2.y", options: [.old, .new, .prior], cell: "c")
    try fixture.observe("A/2.x", observer: 2)
    let events = try fixture.apply([
      "set A/2 x 1", "set A/1 calm 0", #"patch A/2 {"x":2,"y":"b"}"#, "set A/1 x 1", "set A/3 x 9",
    ])
    #expect(
      events[1].map(lines) == [
        "A/2.x old=0 new=1", "[c] A/2.y prior old=\"a\"", "[c] A/2.y old=\"a\" new=\"b\"", "A/2.y old=\"a\" new=\"b\"",
        "A/2.x old=1 new=2", "A/1.x old=0 new=1",
      ])
    #expect(events[2].map(lines) == ["A/2.x old=0 new=1", "A/2.x old=1 new=2"])
    #expect(events.count == 2)
  }

  @Test("The first observer is told before the last one's event is made")
  mutating func pipelining() throws {
    for object in 1...3 { try fixture.observe("A/\(object).x", observer: UInt64(object)) }
    let commit = try fixture.model.commit(Transaction(try (1...3).map { try operation("set A/\($0) x 1") }))
    let notices = try #require(AttributeNotices(of: commit, in: fixture.index))
    var observers: [UInt64] = []
    notices.forEachEvent(changesPerObserver: .max, bytesPerObserver: .max) { observers.append($0.observer.rawValue) }
    #expect(observers == [1, 2, 3])
  }

  @Test("A value that is too long for the only observer of a setting is not told")
  mutating func tooLong() throws {
    try fixture.observe("A/1.y", options: [.new], observer: 1)
    let commit = try fixture.model.commit(Transaction([try operation(#"set A/1 y "four""#)]))
    for (limit, isTooLong) in [(3, true), (4, false)] {
      for past in [nil, PastState(before: [commit], of: fixture.model.state)] {
        var (index, events) = (fixture.index, [ObserverEvent]())
        index.notify([commit], of: fixture.model.state, from: past, bytesPerObserver: limit) { events.append($0) }
        #expect(events.map(\.isTooLong) == [isTooLong] && events.map(\.changes.isEmpty) == [isTooLong])
      }
    }
  }

  @Test("Any setting sends the same notifications as the notifier of all commits", arguments: 0..<40)
  mutating func likeAnyOther(round: Int) throws {
    var random = SplitMix64(seed: seed, part: UInt64(round))
    let paths = ["x", "y", "calm"]
    for _ in 0..<8 {
      try fixture.observe(
        "A/\(Int.random(in: 1...3, using: &random)).\(paths.randomElement(using: &random) ?? "x")",
        options: [[.old, .new], [.new], [.old, .new, .prior], [.prior]].randomElement(using: &random) ?? [],
        observer: UInt64.random(in: 1...4, using: &random), cell: [nil, "a", "b"].randomElement(using: &random) ?? nil)
    }
    var commits: [Commit] = []
    for _ in 0..<Int.random(in: 1...3, using: &random) {
      let operations = (0..<Int.random(in: 1...6, using: &random)).map { _ in
        let object = "A/\(Int.random(in: 1...3, using: &random))"
        return switch Int.random(in: 0..<4, using: &random) {
        case 0: "set \(object) x \(Int.random(in: 0..<3, using: &random))"
        case 1: "set \(object) calm \(Int.random(in: 0..<2, using: &random))"
        case 2: "set \(object) y \"\(String(repeating: "t", count: Int.random(in: 0..<4, using: &random)))\""
        default: #"patch \#(object) {"y":"p","calm":\#(Int.random(in: 0..<2, using: &random)),"x":7}"#
        }
      }
      commits.append(try fixture.model.commit(Transaction(try operations.map(operation), writer: "w")))
    }
    #expect(commits.allSatisfy { AttributeNotices(of: $0, in: fixture.index) != nil })
    let present = fixture.model.state
    let (changes, bytes) = (Int.random(in: 1...9, using: &random), Int.random(in: 2...30, using: &random))
    func told(_ past: PastState?) -> [String] {
      var (index, told) = (fixture.index, [String]())
      index.notify(
        commits, of: present, from: past, changesPerObserver: changes, bytesPerObserver: bytes
      ) { event in
        told.append(
          "\(event.revision) \(event.observer.rawValue) \(event.writer ?? "") \(lines(event)) "
            + "\(event.hasOverflowed) \(event.isTooLong)")
      }
      return told.sorted()
    }
    #expect(told(nil) == told(PastState(before: commits, of: present)), "KEYWAY_TEST_SEED=\(seed)")
  }
}
