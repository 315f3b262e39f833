import KeyValueModel
import Testing

@Suite("Delete rules over collections")
struct DeleteRuleTests {
  static let schema = """
    entities:
      Hub:
        keys:
          loose: {toMany: Part, ordered: true, inverse: hub}
          owned: {toMany: Part, inverse: owner, delete: cascade}
          guarded: {toMany: Part, ordered: true, inverse: ward, delete: deny}
          extras: {toMany: Part, ordered: true, delete: cascade}
          blockers: {toMany: Part, delete: deny}
          seen: {toMany: Part, ordered: true}
          peers: {toMany: Hub, inverse: peers, delete: cascade}
      Part:
        keys:
          hub: {toOne: Hub, inverse: loose}
          owner: {toOne: Hub, inverse: owned}
          ward: {toOne: Hub, inverse: guarded}
      Leaf: {keys: {home: {toOne: Hub, optional: false}, stem: {toOne: Stem, inverse: leaves, optional: false}}}
      Stem: {keys: {leaves: {toMany: Leaf, ordered: true, inverse: stem, delete: nullify}}}
      Pot: {keys: {stems: {toMany: Stem, delete: cascade}, leaves: {toMany: Leaf, delete: cascade}}}
      Team: {keys: {members: {toMany: Member, inverse: team, delete: cascade}, lead: {toOne: Member, delete: deny}}}
      Member: {keys: {team: {toOne: Team, inverse: members, delete: deny}}}
    """

  var fixture: Fixture

  init() throws {
    fixture = try Fixture(Self.schema)
    for id in 1...3 { try fixture.create("Hub/\(id)") }
    for id in 1...6 { try fixture.create("Part/\(id)") }
  }

  private func there(_ entity: String) throws -> String {
    let entity = try fixture.model.schema.requireEntity(entity)
    return fixture.model.state.references(of: entity).map(\.id).joined()
  }

  @Test("Nullify makes the members forget the object, and collections everywhere forget a deleted member")
  mutating func nullify() throws {
    try fixture.set("Hub/1", "loose", #"["Part/2","Part/1"]"#)
    try fixture.set("Hub/2", "seen", #"["Part/3","Part/2","Part/1"]"#)
    try fixture.delete("Hub/1")
    #expect(try (there("Part"), fixture.value("Part/1", "hub")) == ("123456", "null"))
    let commit = try fixture.commit(.delete("Part/2"))
    #expect(try fixture.value("Hub/2", "seen") == #"["Part/3","Part/1"]"#)
    #expect(try fixture.changes(commit).first == "Hub/2.seen removal [1] - Part/2")
    #expect(inconsistencies(in: fixture.model.state) == [])
  }

  @Test("Cascade takes the members along, with an inverse and without, and what they reach in turn")
  mutating func cascade() throws {
    try fixture.patch("Hub/1", #"{"owned":["Part/1","Part/2"],"extras":["Part/3"],"peers":["Hub/2"]}"#)
    try fixture.patch("Hub/2", #"{"owned":["Part/4"]}"#)
    try fixture.patch("Hub/3", #"{"seen":["Part/5","Part/4","Part/3","Part/1"],"loose":["Part/3","Part/6"]}"#)
    let commit = try fixture.commit(.delete("Hub/1"))
    #expect(try (there("Hub"), there("Part")) == ("3", "56"))
    #expect(try (fixture.value("Hub/3", "seen"), fixture.value("Hub/3", "loose")) == (#"["Part/5"]"#, #"["Part/6"]"#))
    let told = Set(try fixture.changes(commit).filter { $0.hasPrefix("Hub/3") })
    #expect(told == ["Hub/3.seen removal [1, 2, 3] - Part/4 Part/3 Part/1", "Hub/3.loose removal [0] - Part/3"])
    #expect(inconsistencies(in: fixture.model.state) == [])
  }

  @Test("Deny forbids the deletion while there is a member that stays", arguments: ["guarded", "blockers"])
  mutating func deny(key: String) throws {
    try fixture.set("Hub/1", key, #"["Part/1","Part/2"]"#)
    let error = try fixture.error([.delete("Hub/1")])
    #expect((error.code, error.object) == (.deleteDenied, "Hub/1"))
    // The members may be deleted, and members that are deleted with the object do not prevent that.
    try fixture.delete("Part/1")
    #expect(try fixture.error([.delete("Hub/1")]).code == .deleteDenied)
    try fixture.set("Hub/1", "owned", #"["Part/2"]"#)
    try fixture.delete("Hub/1")
    #expect(try (there("Hub"), there("Part")) == ("23", "3456"))
    #expect(inconsistencies(in: fixture.model.state) == [])
  }

  @Test("A to-one that must have a value keeps what it names from being deleted, with an inverse and without")
  mutating func required() throws {
    try fixture.create("Stem/1")
    try fixture.create("Leaf/1", #"{"home":"Hub/1","stem":"Stem/1"}"#)
    #expect(try fixture.error([.delete("Hub/1")]).code == .deleteDenied)
    #expect(try fixture.error([.delete("Stem/1")]).code == .deleteDenied)
    #expect(try fixture.error([.set("Stem/1.leaves", to: "[]")]).code == .nullNotAllowed)
    // The hub may be deleted together with the objects that need it.
    try fixture.create("Pot/1", #"{"stems":["Stem/1"],"leaves":["Leaf/1"]}"#)
    try fixture.commit(.delete("Pot/1"), .delete("Hub/1"))
    #expect(try (there("Stem"), there("Leaf"), there("Hub")) == ("", "", "23"))
    #expect(inconsistencies(in: fixture.model.state) == [])
  }

  @Test("Rules of both sides count: the one of the object that is deleted decides")
  mutating func bothSides() throws {
    for id in 1...3 { try fixture.create("Member/\(id)") }
    try fixture.create("Team/1", #"{"members":["Member/1","Member/2"]}"#)
    #expect(try fixture.error([.delete("Member/1")]).code == .deleteDenied)
    try fixture.set("Team/1", "lead", #""Member/3""#)
    #expect(try fixture.error([.delete("Team/1")]).code == .deleteDenied)
    try fixture.set("Team/1", "lead", #""Member/2""#)
    try fixture.delete("Team/1")
    #expect(try there("Member") == "3")
  }

  @Test("An object that is in its own collections can be deleted")
  mutating func itself() throws {
    try fixture.set("Hub/1", "peers", #"["Hub/1"]"#)
    try fixture.delete("Hub/1")
    #expect(try there("Hub") == "23")
    #expect(inconsistencies(in: fixture.model.state) == [])
  }

  @Test("A denied cascade leaves every collection in its order")
  mutating func deniedCascade() throws {
    try fixture.patch(
      "Hub/1", #"{"extras":["Part/3","Part/1","Part/2"],"peers":["Hub/2"],"loose":["Part/2","Part/1"]}"#)
    try fixture.patch("Hub/2", #"{"guarded":["Part/6"]}"#)
    try fixture.patch("Hub/3", #"{"seen":["Part/3","Part/2","Part/1"]}"#)
    let error = try fixture.error([
      .delete("Part/1"), .insert(#"["Part/5"]"#, into: "Hub/3.seen", at: [0]), .delete("Hub/1"),
    ])
    #expect((error.code, error.operation, error.object) == (.deleteDenied, 2, "Hub/2"))
    #expect(inconsistencies(in: fixture.model.state) == [])
  }
}
