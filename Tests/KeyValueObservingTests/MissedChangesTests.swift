import KeyValueModel
import KeyValueObserving
import TestKit
import Testing

@Suite("Missed changes of an invisible cell")
struct MissedChangesTests {
  var fixture: Fixture
  var observations: [Observation] = []
  var pending: MissedChanges?

  init() throws {
    fixture = try Fixture(
      """
      entities:
        A:
          keys:
            x: {type: integer}
            y: {type: integer}
            z: {type: integer}
            sum: {type: integer, computed: x + y}
            other: {toOne: A}
            mute: {toOne: A, notifies: manual}
            list: {toMany: integer, ordered: true}
            set: {toMany: string}
            first: {computed: other}
      """,
      #"create A/1 {"x":1,"y":1,"z":1,"list":[1,2,3,4,5],"set":["a","b","c","d","e"]}"#,
      #"create A/2 {"x":7,"list":[11,12,13,14,15]}"#)
  }

  /// Observes these paths of A/1, and begins to collect missed changes.
  private mutating func hide(_ paths: String..., options: ObservingOptions = [.old, .new]) throws {
    observations = try paths.map { try fixture.observation("A/1", $0, options) }
    fixture.index.add(observations, of: ObserverID(1), in: fixture.model.state)
    pending = MissedChanges(observations, in: fixture.model.state)
  }

  /// Commits each operation on its own.
  private mutating func apply(_ operations: String...) throws {
    for operation in operations {
      guard let event = try fixture.apply([operation])[1] else { continue }
      pending?.absorb(event.changes, gone: event.gone.first?.object)
    }
  }

  private func coalesced() throws -> [String] {
    try #require(pending).coalesced(observations, cell: "c", in: fixture.model.state).map(line)
  }

  @Test("Many changes become one for each path, with the old of the beginning and the present new")
  mutating func coalescing() throws {
    try hide("y", "x", "z", options: [.old, .new, .prior])
    let event = try #require(try fixture.apply(["set A/1 x 2", "set A/1 x 3"])[1])
    pending?.absorb(event.changes, gone: nil)
    try apply("set A/1 y 5", "set A/1 x 4")
    #expect(pending?.commits == 3)
    #expect(try coalesced() == ["[c] A/1.y old=1 new=5 coalesced=1", "[c] A/1.x old=1 new=4 coalesced=3"])
  }

  @Test("Old and new are told as they were asked for, and without either that something happened")
  mutating func options() throws {
    for (options, told) in [(.old, "old=1 "), (.new, "new=4 "), ([], "")] as [(ObservingOptions, String)] {
      fixture.index.remove(ObserverID(1))
      try apply("set A/1 x 1")
      try hide("x", options: options)
      try apply("set A/1 x 4")
      #expect(try coalesced() == ["[c] A/1.x \(told)coalesced=1"])
    }
  }

  @Test("A value that is the same at the end is sent too")
  mutating func thereAndBack() throws {
    try hide("x", "list", "set", "other")
    try apply("set A/1 x 1", "set A/1 other \"A/2\"", "set A/1 other null")
    try apply("insert A/1 list [6]", "remove A/1 list [6]", #"union A/1 set ["f"]"#, #"minus A/1 set ["f"]"#)
    #expect(
      try coalesced() == [
        "[c] A/1.x old=1 new=1 coalesced=1",
        "[c] A/1.list old=[1,2,3,4,5] new=[1,2,3,4,5] coalesced=2",
        #"[c] A/1.set old=["a","b","c","d","e"] new=["a","b","c","d","e"] coalesced=2"#,
        "[c] A/1.other old=null new=null coalesced=2",
      ])
  }

  @Test("Computed keys and operators are set, whatever became of the members")
  mutating func computed() throws {
    try hide("sum", "list.@sum.self", "list.@unionOfObjects.self", "set.@count", "other.x")
    try apply("set A/1 x 5", "insert A/1 list [6]", "remove A/1 list @0", #"union A/1 set ["f"]"#)
    try apply("set A/1 other \"A/2\"", "set A/2 x 8")
    #expect(
      try coalesced() == [
        "[c] A/1.sum old=2 new=6 coalesced=1", "[c] A/1.list.@sum.self old=15 new=20 coalesced=2",
        "[c] A/1.list.@unionOfObjects.self old=[1,2,3,4,5] new=[2,3,4,5,6] coalesced=2",
        "[c] A/1.set.@count old=5 new=6 coalesced=1", "[c] A/1.other.x old=null new=8 coalesced=2",
      ])
  }

  static let lists: [(operations: [String], told: String)] = [
    (["insert A/1 list [6,7] @0,3", "insert A/1 list [8]"], "insertion at 0,3,7 new=[6,7,8]"),
    (["insert A/1 list [6,7]", "remove A/1 list [6]"], "insertion at 5 new=[7]"),
    (["remove A/1 list @1", "remove A/1 list @3"], "removal at 1,4 old=[2,5]"),
    (["insert A/1 list [6]", "remove A/1 list [2,6]"], "removal at 1 old=[2]"),
    (["replace A/1 list [9] @1", "replace A/1 list [8] @1"], "replacement at 1 old=[2] new=[8]"),
    (["replace A/1 list [9] @1", "replace A/1 list [8] @4"], "replacement at 1,4 old=[2,5] new=[9,8]"),
    (["remove A/1 list @0", "insert A/1 list [6] @0"], "replacement at 0 old=[1] new=[6]"),
    (["remove A/1 list @0", "insert A/1 list [6] @1"], "replacement at 0,1 old=[1,2] new=[2,6]"),
    // With one more index the change would name as many members as the list has.
    (["remove A/1 list @0", "insert A/1 list [6] @2"], "old=[1,2,3,4,5] new=[2,3,6,4,5]"),
    (["remove A/1 list @0,1,2"], "old=[1,2,3,4,5] new=[4,5]"),
    (["remove A/1 list @0", "insert A/1 list [1,6]"], "old=[1,2,3,4,5] new=[2,3,4,5,1,6]"),
    (["remove A/1 list @0,1", "insert A/1 list [6]"], "old=[1,2,3,4,5] new=[3,4,5,6]"),
    (["insert A/1 list [6]", "set A/1 list [1,2,3,4,5,6]"], "old=[1,2,3,4,5] new=[1,2,3,4,5,6]"),
    (["remove A/1 list @0,1,2,3,4", "insert A/1 list [6]"], "old=[1,2,3,4,5] new=[6]"),
  ]

  @Test("An ordered collection is told by what came, went or was replaced, if that is less than all", arguments: lists)
  mutating func ordered(_ operations: [String], _ told: String) throws {
    try hide("list")
    for operation in operations { try apply(operation) }
    #expect(try coalesced() == ["[c] A/1.list \(told) coalesced=\(operations.count)"])
  }

  static let sets: [(operations: [String], told: String)] = [
    ([#"union A/1 set ["aa","z"]"#, #"union A/1 set ["f","a"]"#], #"insertion new=["aa","f","z"]"#),
    ([#"minus A/1 set ["b"]"#, #"minus A/1 set ["a","z"]"#], #"removal old=["a","b"]"#),
    ([#"minus A/1 set ["b"]"#, #"union A/1 set ["f"]"#], #"replacement old=["b"] new=["f"]"#),
    ([#"assign A/1 set ["a","b","c","d"]"#], #"removal old=["e"]"#),
    ([#"minus A/1 set ["b","c","d"]"#], #"old=["a","b","c","d","e"] new=["a","e"]"#),
    ([#"assign A/1 set ["a","x","y"]"#], #"old=["a","b","c","d","e"] new=["a","x","y"]"#),
  ]

  @Test("An unordered collection is told likewise, without places", arguments: sets)
  mutating func unordered(_ operations: [String], _ told: String) throws {
    try hide("set")
    for operation in operations { try apply(operation) }
    #expect(try coalesced() == ["[c] A/1.set \(told) coalesced=\(operations.count)"])
  }

  @Test("Members are told to those who asked for neither old nor new as well")
  mutating func kindOnly() throws {
    try hide("list", options: [])
    try apply("remove A/1 list @0", "remove A/1 list @2")
    #expect(try coalesced() == ["[c] A/1.list removal at 0,3 coalesced=2"])
  }

  @Test("A collection behind a to-one is told by its members, until the to-one is set")
  mutating func behindToOne() throws {
    try apply("set A/1 other \"A/2\"")
    try hide("other.list")
    try apply("insert A/2 list [16]")
    #expect(try coalesced() == ["[c] A/1.other.list insertion at 5 new=[16] coalesced=1"])
    try apply("set A/1 other \"A/1\"", "set A/1 other \"A/2\"", "insert A/2 list [17]")
    #expect(
      try coalesced() == [
        "[c] A/1.other.list old=[11,12,13,14,15] new=[11,12,13,14,15,16,17] coalesced=4"
      ])
  }

  @Test("A value after a key that may change silently is sent as a whole", arguments: ["mute", "first"])
  mutating func behindSilence(_ key: String) throws {
    _ = try fixture.apply(["set A/1 mute \"A/2\"", "set A/1 other \"A/2\""])
    try hide("\(key).list")
    try apply("insert A/2 list [16]")
    _ = try fixture.apply(["set A/1 mute \"A/1\"", "insert A/1 list [17]", "insert A/2 list [18]"])[1].map {
      pending?.absorb($0.changes, gone: nil)
    }
    let told = try coalesced()
    let new = key == "mute" ? "[1,2,3,4,5,17]" : "[11,12,13,14,15,16,18]"
    #expect(told == ["[c] A/1.\(key).list old=[11,12,13,14,15] new=\(new) coalesced=2"])
  }

  @Test("As many members as the limit are remembered, and with one more the collection is told as a whole")
  mutating func limit() throws {
    let limit = MissedChanges.memberLimit
    try apply("set A/1 list \(Array(0..<limit))")
    try hide("list", options: [.new])
    try apply("insert A/1 list \(Array(limit..<limit * 2 - 1))", "remove A/1 list @0")
    let told = try #require(try coalesced().first)
    #expect(told.hasPrefix("[c] A/1.list new=[1,2,"), "both came and went")
    try hide("list", options: [.new])
    try apply("insert A/1 list \(Array(limit * 2..<limit * 3))")
    #expect(try #require(try coalesced().first).hasPrefix("[c] A/1.list insertion at "))
    try apply("remove A/1 list [\(limit * 2)]")
    #expect(try #require(try coalesced().first).hasPrefix("[c] A/1.list insertion at "), "it is one of those")
    try apply("remove A/1 list @0")
    #expect(try #require(try coalesced().first).hasPrefix("[c] A/1.list new=[2,"))
  }

  @Test("A path that a cell names twice is told twice, and counts its changes once")
  mutating func twice() throws {
    try hide("x", "x")
    try apply("set A/1 x 2", "set A/1 x 3")
    let line = "[c] A/1.x old=1 new=3 coalesced=2"
    #expect(try coalesced() == [line, line])
  }

  @Test("Nothing is pending of an object that is gone but that it is gone")
  mutating func gone() throws {
    try hide("x")
    try apply("set A/1 x 2", "delete A/1")
    #expect(pending?.gone?.text == "A/1")
    #expect(pending?.commits == 2)
    _ = try fixture.apply(["create A/1"])
    #expect(try coalesced() == [])
  }

  @Test("A standing reads nothing but what will be told as old, and collections")
  mutating func standing() throws {
    struct Counting: ObjectReader {
      final class Reads { var count = 0 }
      let base: ModelState
      let reads = Reads()
      func record(_ reference: Reference) -> ObjectRecord? {
        reads.count += 1
        return base.record(reference)
      }
    }
    for (paths, options, count) in [
      (["x", "other.x", "sum", "list.@sum.self"], [.new], 0), (["x", "x"], [.old], 1), (["list"], [], 1),
    ] as [([String], ObservingOptions, Int)] {
      let reader = Counting(base: fixture.model.state)
      _ = DeliveredValues(try paths.map { try fixture.observation("A/1", $0, options) }, in: reader)
      #expect(reader.reads.count == count, "\(paths)")
    }
  }
}

@Suite("Merged changes of random traffic")
struct CoalescingTests {
  @Test(
    "A run of commits told at once makes of the value before what the commits made of it one by one",
    arguments: [["always"], ["always", "changed"], ["always", "changed", "manual"]])
  func composition(modes: [String]) throws {
    var kinds: [String: Int] = [:]
    for round in 0..<8 {
      let raceSeed = seed &+ UInt64(round) &* 1_000_003 &+ UInt64(modes.count) << 32
      var race = try CoalescingRace(seed: raceSeed, modes: modes)
      do {
        for _ in 0..<40 { try race.run() }
      } catch let difference as Difference {
        Issue.record(
          """
          KEYWAY_TEST_SEED=\(seed), round \(round): \(difference.text)
          \(race.schema.yaml)
          \(race.trail.joined(separator: "\n"))
          """)
        return
      }
      kinds.merge(race.kinds, uniquingKeysWith: +)
    }
    // Agreement on settings only would prove little.
    #expect(kinds.count == 4, "KEYWAY_TEST_SEED=\(seed): \(kinds)")
  }
}
