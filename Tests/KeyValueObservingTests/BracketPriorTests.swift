import KeyValueModel
import KeyValueObserving
import Testing

@Suite("Priors and old values of brackets")
struct BracketPriorTests {
  private static let schema = """
    entities:
      A:
        keys:
          a: {type: integer}
          m: {type: integer, notifies: manual}
          c: {type: integer, notifies: changed}
          sum: {type: integer, computed: a + m}
          calmSum: {type: integer, computed: c + m}
          b: {toOne: B, inverse: members}
          bm: {computed: b.m}
      B:
        keys:
          y: {type: integer}
          m: {type: integer, notifies: manual}
          members: {toMany: A, ordered: true, inverse: b}
          count: {type: integer, computed: "members.@count"}
          total: {type: integer, computed: "members.@sum.m"}
    """

  private var fixture: Fixture

  init() throws {
    fixture = try Fixture(
      Self.schema, "create B/1 {\"y\":1,\"m\":1}", "create B/2 {\"y\":2,\"m\":2}",
      "create A/1 {\"a\":1,\"m\":1,\"c\":1,\"b\":\"B/1\"}", "create A/4 {\"a\":1,\"m\":3}")
  }

  private let all: ObservingOptions = [.old, .new, .prior]

  // MARK: Silent settings inside

  @Test("The old value of a computed key is that at the willChange, with a manual key set inside, before or after")
  mutating func silentInput() throws {
    try fixture.observe("A/1.sum", options: all)
    #expect(
      try fixture.told("will A/1 a", "set A/1 m 10", "set A/1 a 2", "did A/1 a") == [
        "A/1.sum prior old=2", "A/1.sum old=2 new=12",
      ])
    #expect(
      try fixture.told("will A/1 a", "set A/1 a 3", "set A/1 m 20", "did A/1 a") == [
        "A/1.sum prior old=12", "A/1.sum old=12 new=23",
      ])
    #expect(
      try fixture.told("will A/1 a", "set A/1 m 30", "did A/1 a") == ["A/1.sum prior old=23", "A/1.sum old=23 new=33"])
  }

  @Test("A bracket around a key that is the same in the end is silent, also where a manual key was set inside")
  mutating func silentInputOfUnchanged() throws {
    try fixture.observe("A/1.c", "A/1.calmSum", options: all)
    #expect(try fixture.told("will A/1 c", "set A/1 c 2", "set A/1 m 30", "set A/1 c 1", "did A/1 c") == [])
    #expect(try fixture.told("will A/1 c", "set A/1 m 31", "did A/1 c") == [])
    #expect(
      try fixture.told("will A/1 c", "set A/1 m 32", "set A/1 c 2", "did A/1 c") == [
        "A/1.c prior old=1", "A/1.calmSum prior old=32", "A/1.calmSum old=32 new=34", "A/1.c old=1 new=2",
      ])
  }

  @Test("The same holds behind a link that is bracketed, and of what members hold")
  mutating func silentBehindLink() throws {
    try fixture.observe("A/1.b.m", "A/1.bm", "B/1.total", options: all)
    #expect(
      try fixture.told("will A/1 b", "set B/1 m 5", "did A/1 b") == [
        "A/1.b.m prior old=1", "A/1.bm prior old=1", "A/1.bm old=1 new=5", "A/1.b.m old=1 new=5",
      ])
    #expect(
      try fixture.told("will B/1 members", "set A/1 m 7", #"set B/1 members ["A/1","A/4"]"#, "did B/1 members") == [
        "B/1.total prior old=1", "B/1.total old=1 new=10",
      ])
  }

  @Test("A value that is sent inside a bracket is the old one from then on")
  mutating func toldInside() throws {
    try fixture.observe("A/1.b.m")
    #expect(
      try fixture.told(
        "will A/1 b", "set B/1 m 5", "will B/1 m", "did B/1 m", "set B/1 m 6", "did A/1 b")
        == ["A/1.b.m old=1 new=5", "A/1.b.m old=5 new=6"])
  }

  // MARK: New dependents inside

  @Test("An object that an operation inside links sends prior and change then, and not again at the didChange")
  mutating func linkedInside() throws {
    try fixture.observe("A/4.b.members", "A/4.b.count", "A/4.b", options: all)
    let linked = [
      "A/4.b.members prior old=null", "A/4.b.count prior old=null", "A/4.b prior old=null",
      #"A/4.b old=null new="B/2""#, "A/4.b.count old=null new=1", #"A/4.b.members old=null new=["A/4"]"#,
    ]
    #expect(
      try fixture.told("will B/2 members", #"set B/2 members ["A/4"]"#, "did B/2 members") == linked)
  }

  @Test("Changes that the bracket holds back after that come at the didChange, priors first")
  mutating func keptAfterwards() throws {
    try fixture.observe("A/4.b.y", "A/4.b.members", options: all)
    #expect(
      try fixture.told("will B/2 y", #"set A/4 b "B/2""#, "set B/2 y 9", "did B/2 y") == [
        "A/4.b.y prior old=null", "A/4.b.members prior old=null", #"A/4.b.members old=null new=["A/4"]"#,
        "A/4.b.y old=null new=2", "A/4.b.y prior old=2", "A/4.b.y old=2 new=9",
      ])
    // The prior of observations that depended on the key from the start comes at the willChange.
    #expect(
      try fixture.told("will B/2 y", "set B/2 y 9", "did B/2 y") == ["A/4.b.y prior old=9", "A/4.b.y old=9 new=9"])
  }

  @Test("Each change has its prior where a bracket is opened inside one around a computed key, and closed after it")
  mutating func crossed() throws {
    try fixture.observe("A/1.sum", options: all)
    #expect(
      try fixture.told("will A/1 sum", "will A/1 a", "set A/1 a 5", "did A/1 sum", "set A/1 a 6", "did A/1 a") == [
        "A/1.sum prior old=2", "A/1.sum old=2 new=6", "A/1.sum prior old=6", "A/1.sum old=6 new=7",
      ])
  }
}
