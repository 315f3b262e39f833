import KeyValueModel
import KeyValueObserving
import Testing

@Suite("The meaning of observing")
struct ObservingRulesTests {
  static let schema = """
    entities:
      A:
        keys:
          x: {type: integer}
          calm: {type: integer, notifies: changed}
          mute: {type: integer, notifies: manual}
          b: {toOne: B}
          calmB: {toOne: B, notifies: changed}
          muteB: {toOne: B, notifies: manual}
          self: {toOne: A}
          mate: {toOne: A, inverse: mate}
          j: {type: json}
          cx: {computed: x}
          by: {computed: b.y}
          calmBy: {computed: b.y, notifies: changed}
          muteBy: {computed: b.y, notifies: manual}
          link: {computed: b}
          overCalm: {computed: calmBy}
          overMute: {computed: muteBy}
          selfX: {computed: self.cx}
      B: {keys: {y: {type: integer}, c: {toOne: C, inverse: b}}}
      C: {keys: {z: {type: integer}, b: {toOne: B, inverse: c}}}
      Sub: {extends: A, keys: {cx: {computed: calm}}}
    """

  var fixture: Fixture

  init() throws {
    fixture = try Fixture(
      Self.schema, "create C/1 {\"z\":10}", "create C/2 {\"z\":20}", "create B/1 {\"y\":1,\"c\":\"C/1\"}",
      "create B/2 {\"y\":2,\"c\":\"C/2\"}", "create B/3 {\"y\":1}",
      "create A/1 {\"x\":1,\"b\":\"B/1\",\"calm\":1,\"mute\":1}",
      "create A/2", "create Sub/1")
  }

  @Test("Setting a key to its value notifies, unless the key notifies when changed or by hand")
  mutating func equalValue() throws {
    try fixture.observe("A/1.x", "A/1.calm", "A/1.mute")
    #expect(try fixture.told("set A/1 x 1") == ["A/1.x old=1 new=1"])
    #expect(try fixture.told("set A/1 calm 1") == [])
    #expect(try fixture.told("set A/1 calm 2") == ["A/1.calm old=1 new=2"])
    #expect(try fixture.told("set A/1 mute 2") == [])
    #expect(try fixture.told("patch A/1 {\"calm\":2,\"mute\":3,\"x\":1}") == ["A/1.x old=1 new=1"])
    // Values that are the same number, and strings that only look the same.
    #expect(try fixture.told("set A/1 calm 2.0") == [])
  }

  @Test("Every link of a path is watched; the detached object falls silent and the new one is live")
  mutating func links() throws {
    try fixture.observe("A/1.b.y")
    #expect(try fixture.told("set B/1 y 5") == ["A/1.b.y old=1 new=5"])
    #expect(try fixture.told("set A/1 b \"B/2\"") == ["A/1.b.y old=5 new=2"])
    #expect(try fixture.told("set B/1 y 6") == [])
    #expect(try fixture.told("set B/2 y 7") == ["A/1.b.y old=2 new=7"])
    #expect(try fixture.told("set A/1 b \"B/2\"") == ["A/1.b.y old=7 new=7"])
    #expect(try fixture.told("set B/2 y 8") == ["A/1.b.y old=7 new=8"], "assigning the same middle doubles nothing")
    #expect(try fixture.told("set A/1 b null") == ["A/1.b.y old=8 new=null"])
    #expect(try fixture.told("set B/2 y 9") == [])
    #expect(try fixture.told("set A/1 b \"B/1\"") == ["A/1.b.y old=null new=6"])
  }

  @Test("Replacing a middle object notifies once even if the end value is the same")
  mutating func sameEnd() throws {
    try fixture.observe("A/1.b.y")
    #expect(try fixture.told("set A/1 b \"B/3\"") == ["A/1.b.y old=1 new=1"])
  }

  @Test("Long paths follow changes in their middle, also of far sides that somebody else set")
  mutating func farSides() throws {
    try fixture.observe("A/1.b.c.z")
    #expect(try fixture.told("set C/2 b \"B/1\"") == ["A/1.b.c.z old=10 new=20"])
    #expect(try fixture.told("set C/1 z 11") == [])
    #expect(try fixture.told("set C/2 z 21") == ["A/1.b.c.z old=20 new=21"])
    #expect(try fixture.told("set B/2 c \"C/2\"") == ["A/1.b.c.z old=21 new=null"])
    #expect(try fixture.told("delete B/1") == ["A/1.b.c.z old=null new=null"])
  }

  @Test("An inverse notifies on both sides, once each, and so do the partners who are left")
  mutating func inverses() throws {
    try fixture.observe("B/1.c", "B/2.c", "C/1.b", "C/2.b", options: [.new])
    #expect(
      try Set(fixture.told("set B/1 c \"C/2\"")) == [
        "B/1.c new=\"C/2\"", "B/2.c new=null", "C/1.b new=null", "C/2.b new=\"B/1\"",
      ])
    #expect(try fixture.told("set B/1 c \"C/2\"") == ["B/1.c new=\"C/2\""])
  }

  @Test("One observation hears of one operation once, and of two operations twice, in order")
  mutating func onceAnOperation() throws {
    try fixture.observe("A/1.self.self.x", options: [.new])
    _ = try fixture.apply(["set A/1 self \"A/1\""])
    #expect(try fixture.told("patch A/1 {\"x\":5,\"self\":\"A/1\"}") == ["A/1.self.self.x new=5"])
    #expect(try fixture.told("set A/1 x 6", "set A/1 x 7") == ["A/1.self.self.x new=6", "A/1.self.self.x new=7"])
  }

  @Test("A computed key notifies when anything that it depends on does, even if its value is equal")
  mutating func computed() throws {
    try fixture.observe("A/1.by", "A/1.link", "A/1.link.y", options: [.old, .new])
    #expect(try fixture.told("set B/1 y 1") == ["A/1.by old=1 new=1", "A/1.link.y old=1 new=1"])
    #expect(
      try fixture.told("set A/1 b \"B/2\"") == [
        "A/1.link.y old=1 new=2", "A/1.link old=\"B/1\" new=\"B/2\"", "A/1.by old=1 new=2",
      ])
    #expect(try fixture.told("set B/1 y 4") == [])
  }

  @Test("A computed key that notifies when changed, or by hand, keeps those silent who depend on it")
  mutating func gates() throws {
    try fixture.observe("A/1.calmBy", "A/1.muteBy", "A/1.overCalm", "A/1.overMute", options: [.new])
    #expect(try fixture.told("set B/1 y 1") == [])
    #expect(try fixture.told("set A/1 b \"B/3\"") == [])
    #expect(try fixture.told("set B/3 y 5") == ["A/1.overCalm new=5", "A/1.calmBy new=5"])
    #expect(
      try fixture.told("will A/1 muteBy", "set B/3 y 6", "did A/1 muteBy") == [
        "A/1.overCalm new=6", "A/1.calmBy new=6", "A/1.overMute new=6", "A/1.muteBy new=6",
      ])
  }

  @Test("A link that keeps silent leads elsewhere all the same")
  mutating func silentLinks() throws {
    _ = try fixture.apply(["patch A/1 {\"calmB\":\"B/1\",\"muteB\":\"B/1\"}"])
    try fixture.observe("A/1.calmB.y", "A/1.muteB.y", options: [.new])
    #expect(try fixture.told("set A/1 calmB \"B/1\"") == [])
    #expect(try fixture.told("set A/1 calmB \"B/2\"") == ["A/1.calmB.y new=2"])
    #expect(try fixture.told("set A/1 muteB \"B/3\"") == [])
    #expect(try fixture.told("set B/1 y 9") == [])
    #expect(try fixture.told("set B/3 y 9") == ["A/1.muteB.y new=9"])
  }

  @Test("A computed key that a subclass declares anew hears of what either declaration names")
  mutating func redeclared() throws {
    try fixture.observe("Sub/1.cx")
    #expect(try fixture.told("set Sub/1 calm 3") == ["Sub/1.cx old=null new=3"])
    #expect(try fixture.told("set Sub/1 x 4") == ["Sub/1.cx old=3 new=3"])
    // After a to-one to its parent too.
    try fixture.observe("A/1.selfX", observer: 2)
    _ = try fixture.apply(["set A/1 self \"Sub/1\""])
    #expect(try fixture.apply(["set Sub/1 calm 5"])[2].map(lines) == ["A/1.selfX old=3 new=5"])
    #expect(try fixture.apply(["set Sub/1 x 5"])[2].map(lines) == ["A/1.selfX old=5 new=5"])
    _ = try fixture.apply(["set A/1 self \"A/2\""])
    #expect(try fixture.apply(["set Sub/1 calm 6"])[2].map(lines) == nil)
  }

  @Test("Old is a snapshot, of json values as well")
  mutating func snapshots() throws {
    try fixture.observe("A/1.j")
    #expect(
      try fixture.told("set A/1 j {\"a\":[1]}", "patch A/1 {\"j\":{\"b\":2}}") == [
        "A/1.j old=null new={\"a\":[1]}", "A/1.j old={\"a\":[1]} new={\"a\":[1],\"b\":2}",
      ])
  }

  @Test("A failed transaction tells nobody")
  mutating func failure() throws {
    try fixture.observe("A/1.x")
    #expect(throws: ModelError.self) { try fixture.told("set A/1 x 2", "set A/1 x \"two\"") }
    #expect(try fixture.told("set A/1 x 3") == ["A/1.x old=1 new=3"])
  }

  @Test("A put tells of the keys in the body and of those whose value really changes")
  mutating func put() throws {
    try fixture.observe("A/1.x", "A/1.calm", "A/1.b", "A/1.j", "A/1.mate", options: [.new])
    #expect(
      try Set(fixture.told("put A/1 {\"x\":1,\"b\":null}")) == ["A/1.x new=1", "A/1.b new=null", "A/1.calm new=null"])
  }
}
