import KeyValueModel
import KeyValueObserving
import Testing

@Suite("Brackets")
struct BracketTests {
  static let schema = """
    entities:
      A:
        keys:
          x: {type: integer}
          calm: {type: integer, notifies: changed}
          mute: {type: integer, notifies: manual}
          b: {toOne: B}
          calmB: {toOne: B, notifies: changed}
          cx: {computed: x}
          ccx: {computed: cx}
          by: {computed: b.y}
          calmX: {computed: x, notifies: changed}
          muteX: {computed: x, notifies: manual}
          root: {toOne: A}
          calmRootY: {computed: root.b.y, notifies: changed}
      B: {keys: {y: {type: integer}}}
    """

  var fixture: Fixture

  init() throws {
    fixture = try Fixture(
      Self.schema, "create B/1 {\"y\":1}", "create B/2 {\"y\":3}",
      "create A/1 {\"x\":1,\"calm\":1,\"mute\":1,\"b\":\"B/1\",\"calmB\":\"B/1\"}")
  }

  @Test(
    "The outermost bracket of a key is one change, old from the first will and new from the last did",
    arguments: ["x", "calm", "mute"])
  mutating func one(key: String) throws {
    try fixture.observe("A/1.\(key)", options: [.old, .new, .prior])
    #expect(
      try fixture.told(
        "will A/1 \(key)", "set A/1 \(key) 2", "will A/1 \(key)", "set A/1 \(key) 3", "did A/1 \(key)",
        "set A/1 \(key) 4", "did A/1 \(key)") == ["A/1.\(key) prior old=1", "A/1.\(key) old=1 new=4"])
  }

  @Test("A bracket around nothing is a change, but not of a key that notifies when changed")
  mutating func nothing() throws {
    try fixture.observe("A/1.x", "A/1.calm", "A/1.mute", options: [.old, .new, .prior])
    #expect(try fixture.told("will A/1 x", "did A/1 x") == ["A/1.x prior old=1", "A/1.x old=1 new=1"])
    #expect(try fixture.told("will A/1 mute", "did A/1 mute") == ["A/1.mute prior old=1", "A/1.mute old=1 new=1"])
    #expect(try fixture.told("will A/1 calm", "did A/1 calm") == [])
    #expect(try fixture.told("will A/1 calm", "set A/1 calm 2", "set A/1 calm 1", "did A/1 calm") == [])
  }

  @Test("Setting a manual key outside a bracket is silent, and what it was then is old")
  mutating func manual() throws {
    try fixture.observe("A/1.mute")
    #expect(
      try fixture.told("set A/1 mute 5", "will A/1 mute", "set A/1 mute 6", "did A/1 mute", "set A/1 mute 7") == [
        "A/1.mute old=5 new=6"
      ])
  }

  @Test("Around an input of a computed key, the computed key is told once, at the bracket's end")
  mutating func input() throws {
    try fixture.observe("A/1.ccx", "A/1.cx", "A/1.x", "A/1.calmX", options: [.old, .new])
    #expect(
      try fixture.told("will A/1 x", "set A/1 x 2", "set A/1 x 3", "did A/1 x") == [
        "A/1.ccx old=1 new=3", "A/1.calmX old=1 new=3", "A/1.cx old=1 new=3", "A/1.x old=1 new=3",
      ])
    // The computed key that notifies when changed did not change: it sends no change, and no prior.
    fixture.index.remove(ObserverID(1))
    try fixture.observe("A/1.calmX", "A/1.muteX", options: [.old, .new, .prior])
    #expect(try fixture.told("will A/1 x", "set A/1 x 2", "set A/1 x 3", "did A/1 x") == [])
  }

  @Test("A bracket around a computed key holds its changes back, but not those of its inputs")
  mutating func computed() throws {
    try fixture.observe("A/1.cx", "A/1.x", "A/1.ccx", options: [.old, .new, .prior])
    #expect(
      try fixture.told("will A/1 cx", "set A/1 x 2", "set A/1 x 3", "did A/1 cx") == [
        "A/1.cx prior old=1", "A/1.ccx prior old=1", "A/1.x prior old=1", "A/1.x old=1 new=2",
        "A/1.x prior old=2", "A/1.x old=2 new=3", "A/1.ccx old=1 new=3", "A/1.cx old=1 new=3",
      ])
    fixture.index.remove(ObserverID(1))
    try fixture.observe("A/1.muteX", options: [.old, .new])
    #expect(
      try fixture.told("will A/1 muteX", "set A/1 x 9", "did A/1 muteX", "set A/1 x 10") == ["A/1.muteX old=3 new=9"])
  }

  @Test("Interleaved brackets are told in the order of their didChange, priors in that of their willChange")
  mutating func interleaved() throws {
    try fixture.observe("A/1.x", "A/1.mute", options: [.old, .new, .prior])
    #expect(
      try fixture.told(
        "will A/1 x", "will A/1 mute", "set A/1 x 2", "set A/1 mute 2", "did A/1 x", "set A/1 mute 3", "did A/1 mute")
        == ["A/1.x prior old=1", "A/1.mute prior old=1", "A/1.x old=1 new=2", "A/1.mute old=1 new=3"])
  }

  @Test("Everything inside several brackets is final when the first of them is reported")
  mutating func final() throws {
    try fixture.observe("A/1.by", options: [.old, .new])
    #expect(
      try fixture.told("will A/1 b", "will B/2 y", "set A/1 b \"B/2\"", "set B/2 y 9", "did A/1 b", "did B/2 y") == [
        "A/1.by old=1 new=9"
      ])
  }

  @Test("The old value at the end of a bracket is the last sent inside; a held back value is the next old one")
  mutating func chain() throws {
    try fixture.observe("A/1.b.y")
    #expect(
      try fixture.told("will B/1 y", "set B/1 y 2", "set A/1 b \"B/1\"", "set B/1 y 3", "did B/1 y") == [
        "A/1.b.y old=1 new=2", "A/1.b.y old=2 new=3",
      ])
    // The new middle was not announced yet when its end value changed.
    #expect(
      try fixture.told("will A/1 b", "set A/1 b \"B/2\"", "set B/2 y 7", "did A/1 b") == [
        "A/1.b.y old=3 new=7", "A/1.b.y old=7 new=7",
      ])
  }

  @Test("A bracket ends for those who no longer depend on the key, prior included")
  mutating func detached() throws {
    try fixture.observe("A/1.b.y", options: [.old, .new, .prior])
    #expect(
      try fixture.told("will B/1 y", "set B/1 y 2", "set A/1 b \"B/2\"", "did B/1 y") == [
        "A/1.b.y prior old=1", "A/1.b.y old=1 new=3",
      ])
  }

  @Test("A link that led elsewhere and came back is silent if it notifies when changed, unless the end has changed")
  mutating func backAgain() throws {
    try fixture.observe("A/1.calmB.y")
    #expect(
      try fixture.told("will A/1 calmB", "set A/1 calmB \"B/2\"", "set A/1 calmB \"B/1\"", "did A/1 calmB") == [])
    #expect(
      try fixture.told(
        "will A/1 calmB", "set A/1 calmB \"B/2\"", "set B/1 y 5", "set A/1 calmB \"B/1\"", "did A/1 calmB")
        == ["A/1.calmB.y old=1 new=5"])
  }

  @Test("Changes that a bracket held back come with the next one, even after a key that notifies when changed")
  mutating func owed() throws {
    _ = try fixture.apply(["create A/2 {\"root\":\"A/1\"}", "create A/3 {\"b\":\"B/2\"}"])
    try fixture.observe("A/2.calmRootY")
    // Neither setting changes the computed value as it is by then, but the observer still sees the one before.
    #expect(
      try fixture.told("will A/1 b", "set A/1 b \"B/2\"", "set A/2 root \"A/3\"", "did A/1 b") == [
        "A/2.calmRootY old=1 new=3"
      ])
  }

  @Test("Each bracket compares with what stood at its own willChange, also where one is open before it")
  mutating func ownStart() throws {
    try fixture.observe("A/1.x", "A/1.calm")
    #expect(
      try fixture.told(
        "will A/1 x", "set A/1 calm 5", "will A/1 calm", "set A/1 calm 6", "set A/1 x 2", "set A/1 calm 5",
        "did A/1 calm", "did A/1 x") == ["A/1.calm old=1 new=5", "A/1.x old=1 new=2"])
    // A bracket does not remember the values of another that was closed before.
    #expect(
      try fixture.told(
        "will A/1 x", "set A/1 calm 7", "did A/1 x", "will A/1 calm", "set A/1 calm 5", "set A/1 calm 7",
        "did A/1 calm") == ["A/1.calm old=5 new=7", "A/1.x old=2 new=2"])
  }

  @Test("A transaction's worth of brackets inside each other, the first told last", arguments: [0, 1, 3_300])
  mutating func many(observed: Int) throws {
    let count = 3_300
    _ = try fixture.apply((10..<count + 10).map { "create A/\($0) {\"calm\":0}" })
    for number in 10..<10 + observed { try fixture.observe("A/\(number).calm", options: [.old, .new, .prior]) }
    let numbers = 10..<count + 10
    let event = try fixture.apply(
      numbers.map { "will A/\($0) calm" } + numbers.map { "set A/\($0) calm \($0 % 2)" }
        + numbers.reversed().map { "did A/\($0) calm" })[1]
    // Half of them are set to their former value, and send nothing.
    let told = (10..<10 + observed).filter { $0 % 2 == 1 }
    let priors = told.map { "A/\($0).calm prior old=0" }
    #expect(event.map(lines) ?? [] == priors + told.reversed().map { "A/\($0).calm old=0 new=1" })
  }

  // MARK: Other inputs meanwhile

  /// Makes an object `S/1` with two inputs that several computed keys read, and a team of two members.
  private static func inputs() throws -> Fixture {
    try Fixture(
      """
      entities:
        S:
          keys:
            a: {type: integer}
            b: {type: integer}
            calmA: {type: integer, notifies: changed}
            t: {toOne: T}
            sum: {type: integer, computed: a + b}
            twice: {type: integer, computed: sum + b}
            calmSum: {type: integer, computed: calmA + b}
            calm: {type: integer, computed: a + b, notifies: changed}
            mute: {type: integer, computed: a + b, notifies: manual}
            size: {computed: t.size}
        T:
          keys:
            size: {type: integer}
            members: {toMany: M, inverse: team}
            total: {type: integer, computed: "members.@sum.net"}
        M:
          keys:
            team: {toOne: T, inverse: members}
            pay: {type: integer}
            tax: {type: integer}
            net: {type: integer, computed: pay - tax}
      """, #"create T/1 {"size":1}"#, #"create T/2 {"size":5}"#,
      #"create S/1 {"a":1,"b":2,"calmA":1,"t":"T/1"}"#, #"create M/1 {"pay":10,"tax":1,"team":"T/1"}"#,
      #"create M/2 {"pay":20,"tax":2,"team":"T/1"}"#)
  }

  @Test("Inside a bracket around one input, what is done to another is told at its end, in one")
  func otherInput() throws {
    var fixture = try Self.inputs()
    try fixture.observe("S/1.sum", "S/1.twice", "S/1.b", options: [.old, .new, .prior])
    #expect(
      try fixture.told("will S/1 a", "set S/1 b 10", "set S/1 a 3", "set S/1 b 20", "did S/1 a") == [
        "S/1.sum prior old=3", "S/1.twice prior old=5",
        "S/1.b prior old=2", "S/1.b old=2 new=10", "S/1.b prior old=10", "S/1.b old=10 new=20",
        "S/1.twice old=5 new=43", "S/1.sum old=3 new=23",
      ])
    // Outside of the bracket the change is sent at once.
    #expect(
      try fixture.told("will S/1 a", "did S/1 a", "set S/1 b 2").suffix(2) == [
        "S/1.sum old=23 new=5", "S/1.b old=20 new=2",
      ])
  }

  @Test("Two brackets around two inputs tell at both ends, one inside the other too, and nothing between")
  func twoInputs() throws {
    var fixture = try Self.inputs()
    try fixture.observe("S/1.sum")
    #expect(
      try fixture.told(
        "will S/1 a", "set S/1 b 10", "will S/1 b", "set S/1 a 3", "set S/1 b 20", "did S/1 a", "set S/1 a 4",
        "did S/1 b")
        == ["S/1.sum old=3 new=23", "S/1.sum old=23 new=24"])
    #expect(
      try fixture.told(
        "will S/1 a", "will S/1 a", "set S/1 b 0", "did S/1 a", "set S/1 b 1", "did S/1 a") == ["S/1.sum old=24 new=5"])
  }

  @Test("A bracket around a computed key holds back what another reads beside it")
  func aroundComputed() throws {
    var fixture = try Self.inputs()
    try fixture.observe("S/1.twice", "S/1.sum")
    #expect(
      try fixture.told("will S/1 sum", "set S/1 b 3", "set S/1 a 2", "did S/1 sum") == [
        "S/1.twice old=5 new=8", "S/1.sum old=3 new=5",
      ])
    // The computed key's own bracket inside one around its input: changes at both ends.
    #expect(
      try fixture.told("will S/1 a", "will S/1 sum", "set S/1 b 4", "did S/1 sum", "set S/1 b 5", "did S/1 a") == [
        "S/1.twice old=8 new=10", "S/1.sum old=5 new=6", "S/1.twice old=10 new=12", "S/1.sum old=6 new=7",
      ])
  }

  @Test(
    "A computed key that reads a path is told at the end, also if it then no longer reads what the bracket is around")
  func path() throws {
    var fixture = try Self.inputs()
    try fixture.observe("S/1.size", options: [.old, .new, .prior])
    #expect(
      try fixture.told("will S/1 t", #"set S/1 t "T/2""#, "set T/2 size 6", "did S/1 t") == [
        "S/1.size prior old=1", "S/1.size old=1 new=6",
      ])
    #expect(
      try fixture.told("will T/2 size", "set T/2 size 7", #"set S/1 t "T/1""#, "did T/2 size", "set T/1 size 2") == [
        "S/1.size prior old=6", "S/1.size old=6 new=1", "S/1.size prior old=1", "S/1.size old=1 new=2",
      ])
  }

  @Test("A sum over members that a computed key makes is told at the end of a bracket around one of them")
  func members() throws {
    var fixture = try Self.inputs()
    try fixture.observe("T/1.total")
    #expect(
      try fixture.told("will M/1 pay", "set M/2 pay 30", "set M/1 tax 0", #"set M/2 team null"#, "did M/1 pay") == [
        "T/1.total old=27 new=10"
      ])
    // An observed sum is sent as it changes, but a change of a member's computed key is held back.
    fixture.index.remove(ObserverID(1))
    try fixture.observe("T/1.members.@sum.net", "T/1.members.@sum.tax")
    #expect(
      try fixture.told("will M/1 pay", "set M/1 tax 3", "set M/1 pay 20", "did M/1 pay") == [
        "T/1.members.@sum.tax old=0 new=3", "T/1.members.@sum.net old=10 new=17",
      ])
  }

  @Test(
    "Of keys that notify when changed, what another input did is told where the value differs; of manual ones nothing")
  func kinds() throws {
    var fixture = try Self.inputs()
    try fixture.observe("S/1.calm", "S/1.mute", "S/1.calmSum", options: [.old, .new, .prior])
    #expect(
      try fixture.told("will S/1 a", "set S/1 a 0", "set S/1 b 3", "did S/1 a") == [
        "S/1.calmSum prior old=3", "S/1.calmSum old=3 new=4",
      ])
    // The bracketed key did not change, and sends nothing; the change of the other key is still sent.
    #expect(
      try fixture.told("will S/1 calmA", "set S/1 b 3", "did S/1 calmA") == [
        "S/1.calmSum prior old=4", "S/1.calmSum old=4 new=4",
      ])
    #expect(try fixture.told("will S/1 calmA", "set S/1 calmA 2", "set S/1 calmA 1", "did S/1 calmA") == [])
  }

  @Test("A bracket around an object's deletion and return is one change")
  mutating func again() throws {
    try fixture.observe("A/1.x", "A/1.cx", options: [.old, .new])
    #expect(
      try fixture.told("will A/1 x", "delete A/1", "create A/1 {\"x\":5}", "did A/1 x") == [
        "A/1.cx old=1 new=5", "A/1.x old=1 new=5",
      ])
  }

  @Test("A bracket around a computed key that notifies when changed compares its value with that at the beginning")
  mutating func calmComputedKey() throws {
    var fixture = try Fixture(
      """
      entities:
        A:
          keys:
            x: {type: integer}
            more: {computed: "this.x + 1", notifies: changed}
            digits: {computed: "[this.x, 0]", notifies: changed}
      """, #"create A/1 {"x":1}"#)
    try fixture.observe("A/1.more", "A/1.digits")
    for (key, change) in [("more", "old=2 new=5"), ("digits", "old=[1,0] new=[4,0]")] {
      #expect(
        try fixture.told("will A/1 \(key)", "set A/1 x 4", "did A/1 \(key)").contains("A/1.\(key) \(change)"))
      #expect(
        try fixture.told("will A/1 \(key)", "set A/1 x 5", "set A/1 x 4", "did A/1 \(key)").count { $0.contains(key) }
          == 0)
      _ = try fixture.told("set A/1 x 1")
    }
  }
}
