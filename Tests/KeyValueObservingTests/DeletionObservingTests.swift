import KeyValueModel
import KeyValueObserving
import Testing

@Suite("Observing what is deleted")
struct DeletionObservingTests {
  static let schema = """
    entities:
      A:
        keys:
          x: {type: integer, default: 7}
          calm: {type: integer, notifies: changed}
          mute: {type: integer, notifies: manual}
          b: {toOne: B, delete: cascade}
          by: {computed: b.y}
          muteX: {computed: x, notifies: manual}
          calmX: {computed: x, notifies: changed}
      B: {keys: {y: {type: integer}}}
    """

  var fixture: Fixture

  init() throws {
    fixture = try Fixture(
      Self.schema, "create B/1 {\"y\":1}", "create B/2 {\"y\":2}", "create A/1 {\"x\":1,\"b\":\"B/1\"}",
      "create A/2 {\"b\":\"B/1\"}")
  }

  @Test("An object that is changed and deleted in one transaction is only gone")
  mutating func gone() throws {
    try fixture.observe("A/1.x", "A/1.b.y", options: [.new, .prior])
    try fixture.observe("A/2.b", options: [.new, .prior])
    #expect(
      try fixture.told("set A/1 x 5", "delete A/1") == ["A/2.b prior", "A/2.b new=null", "gone A/1"])
    #expect(fixture.index.count == 1)
    #expect(try fixture.told("create A/1 {\"x\":3}") == [], "it ended with the object")
  }

  @Test("Every cell that loses its object is told by a gone of its own, and others are left alone")
  mutating func cells() throws {
    try fixture.observe("A/1.x", "A/1.by", cell: "z")
    try fixture.observe("A/1.x", cell: "a")
    try fixture.observe("A/2.x", cell: "m")
    #expect(try fixture.told("delete A/1") == ["[a] gone A/1", "[z] gone A/1"])
    #expect(fixture.index.count == 1)
    fixture.index.remove(ObserverID(1))
    #expect(fixture.index.count == 0)
  }

  @Test("Objects deleted by a cascade are gone too")
  mutating func cascade() throws {
    try fixture.observe("B/1.y", cell: "b")
    try fixture.observe("A/2.by", "A/2.b", cell: "c")
    #expect(
      try fixture.told("delete A/1") == ["[c] A/2.by old=1 new=null", "[c] A/2.b old=\"B/1\" new=null", "[b] gone B/1"])
  }

  @Test("An object that is deleted and made again lives on: its keys are set to null, then to the new")
  mutating func again() throws {
    try fixture.observe("A/1.x", "A/1.by", "A/1.b", options: [.old, .new])
    #expect(
      try fixture.told("delete A/1", "create B/1 {\"y\":8}", "create A/1 {\"b\":\"B/1\"}") == [
        "A/1.by old=1 new=null", "A/1.b old=\"B/1\" new=null", "A/1.x old=1 new=null",
        "A/1.by old=null new=8", "A/1.b old=null new=\"B/1\"", "A/1.x old=null new=7",
      ])
    #expect(try fixture.told("set B/1 y 9") == ["A/1.by old=8 new=9"])
  }

  @Test("While it is away, nothing that it named is heard of")
  mutating func away() throws {
    _ = try fixture.apply(["set A/2 b \"B/2\""])
    fixture = try Fixture(
      Self.schema.replacing(", delete: cascade", with: ""), "create B/1 {\"y\":1}", "create A/1 {\"b\":\"B/1\"}")
    try fixture.observe("A/1.b.y", options: [.new])
    #expect(
      try fixture.told("delete A/1", "set B/1 y 3", "set B/1 y 4", "create A/1 {\"b\":\"B/1\"}", "set B/1 y 5") == [
        "A/1.b.y new=null", "A/1.b.y new=4", "A/1.b.y new=5",
      ])
  }

  @Test("Deleting and making again keeps silent where setting would")
  mutating func silence() throws {
    _ = try fixture.apply(["patch A/1 {\"mute\":1}"])
    try fixture.observe("A/1.calm", "A/1.mute", "A/1.muteX", options: [.new])
    #expect(try fixture.told("delete A/1", "create A/1 {\"mute\":2}") == [])
    _ = try fixture.apply(["set A/1 calm 5"])
    #expect(try fixture.told("delete A/1", "create A/1 {\"calm\":5}") == ["A/1.calm new=null", "A/1.calm new=5"])
  }

  @Test("An object that is made and deleted in one transaction is nobody's business")
  mutating func ephemeral() throws {
    try fixture.observe("A/2.b", options: [.new])
    #expect(
      try fixture.told("create B/9", "set A/2 b \"B/9\"", "delete B/9") == ["A/2.b new=\"B/9\"", "A/2.b new=null"])
  }

  @Test("An object that is deleted twice and made again once is gone or not by how it ends")
  mutating func twice() throws {
    try fixture.observe("B/2.y", options: [.new])
    #expect(try fixture.told("delete B/2", "create B/2", "delete B/2") == ["gone B/2"])
  }
}
