import KeyValueModel
import Testing

@Suite("Deleting")
struct DeletionTests {
  static let schema = """
    entities:
      Node:
        keys:
          name: {type: string}
          next: {toOne: Node, delete: cascade}
          guard: {toOne: Node, delete: deny}
          link: {toOne: Node}
          partner: {toOne: Node, inverse: partner, delete: nullify}
          pet: {toOne: Pet, inverse: owner, delete: cascade}
      Pet: {keys: {owner: {toOne: Node, inverse: pet}}}
      Leaf: {keys: {stem: {toOne: Node, optional: false}}}
    """

  var fixture: Fixture

  init() throws {
    fixture = try Fixture(Self.schema)
    for id in 1...5 { try fixture.create("Node/\(id)") }
    try fixture.create("Pet/1")
  }

  /// The ids of the existing nodes.
  private var nodes: String {
    let node = fixture.model.schema.entities[0]
    return fixture.model.state.references(of: node).map(\.id).joined()
  }

  private mutating func connect(_ keys: String...) throws {
    for text in keys {
      let parts = text.split(separator: " ").map(String.init)
      try fixture.set("Node/\(parts[0])", parts[1], parts[2].contains("/") ? "\"\(parts[2])\"" : "\"Node/\(parts[2])\"")
    }
  }

  @Test("Nullify lets go of the other side, and whoever else names the object names nothing")
  mutating func nullify() throws {
    try connect("1 partner 2", "3 link 1", "4 link 1", "1 link 5")
    try fixture.delete("Node/1")
    #expect(nodes == "2345")
    #expect(try fixture.value("Node/2", "partner") == "null")
    #expect(try (fixture.value("Node/3", "link"), fixture.value("Node/4", "link")) == ("null", "null"))
    #expect(inconsistencies(in: fixture.model.state).isEmpty)
  }

  @Test("Cascade takes along what it reaches, through cycles in the data as well")
  mutating func cascade() throws {
    try connect("1 next 2", "2 next 3", "3 next 1", "3 pet Pet/1", "4 next 1", "5 link 3")
    try fixture.delete("Node/2")
    #expect(nodes == "45")
    #expect(try !fixture.exists("Pet/1"))
    #expect(try (fixture.value("Node/4", "next"), fixture.value("Node/5", "link")) == ("null", "null"))
    #expect(inconsistencies(in: fixture.model.state).isEmpty)
  }

  @Test("An object that names itself can be deleted, by whatever rule")
  mutating func itself() throws {
    try connect("1 next 1", "1 guard 1", "1 link 1", "1 partner 1")
    try fixture.delete("Node/1")
    #expect(nodes == "2345")
  }

  @Test("Deny forbids the deletion while the other side is there and stays")
  mutating func deny() throws {
    try connect("1 guard 2", "3 next 1")
    #expect(try fixture.error([.delete(try ref("Node/1"))]).code == .deleteDenied)
    let error = try fixture.error([.delete(try ref("Node/3"))])
    #expect((error.code, error.object) == (.deleteDenied, "Node/1"))
    // The guarded object may be deleted: the rule protects the object that has the key.
    try fixture.delete("Node/2")
    try fixture.delete("Node/3")
    #expect(nodes == "45")
  }

  @Test("Deny does not count what is deleted together")
  mutating func denyTogether() throws {
    try connect("1 next 2", "1 guard 2", "2 guard 3", "2 next 3")
    try fixture.delete("Node/1")
    #expect(nodes == "45")
  }

  @Test("An object that others need cannot be deleted without them")
  mutating func required() throws {
    try fixture.create("Leaf/1", #"{"stem":"Node/1"}"#)
    try connect("2 next 1")
    for name in ["Node/1", "Node/2"] {
      #expect(try fixture.error([.delete(try ref(name))]).code == .deleteDenied)
    }
    try fixture.commit(.delete(try ref("Leaf/1")), .delete(try ref("Node/2")))
    #expect(nodes == "345")
  }

  @Test("An object may be deleted and made again in one transaction")
  mutating func again() throws {
    try connect("2 link 1")
    let revision = fixture.model.revision
    try fixture.commit(.delete(try ref("Node/1")), .create(try ref("Node/1"), try body(#"{"name":"again"}"#)))
    let record = try #require(fixture.model.state.record(try ref("Node/1")))
    #expect((record.createdAt, record.revision) == (revision + 1, revision + 1))
    #expect(try fixture.value("Node/2", "link") == "null")
  }

  @Test("Deleting twice, or what was never there, is an unknown object")
  mutating func unknown() throws {
    let node = try ref("Node/1")
    let error = try fixture.error([.delete(node), .delete(node)])
    #expect((error.code, error.operation, error.object) == (.unknownObject, 1, "Node/1"))
  }
}
