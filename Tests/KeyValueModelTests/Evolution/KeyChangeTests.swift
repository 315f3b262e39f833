import KeyValueModel
import Testing

@Suite("Changes of keys in a commit")
struct KeyChangeTests {
  static let schema = """
    entities:
      List:
        keys:
          items: {toMany: Item, ordered: true, inverse: list}
          bag: {toMany: Item}
          seen: {toMany: Item, ordered: true}
          mutes: {toMany: Item, ordered: true, notifies: manual}
          calms: {toMany: Item, ordered: true, notifies: changed}
          quiet: {toMany: Item, inverse: shelf, notifies: manual}
          peers: {toMany: List, inverse: peers}
          name: {type: string, notifies: changed}
          note: {type: string, notifies: manual}
      Item: {keys: {list: {toOne: List, inverse: items}, shelf: {toOne: List, inverse: quiet, notifies: changed}}}
    """

  var fixture: Fixture

  init() throws {
    fixture = try Fixture(Self.schema)
    for id in 1...5 { try fixture.create("Item/\(id)") }
    try fixture.create(
      "List/1", #"{"items":["Item/1","Item/2","Item/3"],"bag":["Item/1","Item/2"],"calms":["Item/1","Item/2"]}"#)
    try fixture.create("List/2", #"{"items":["Item/4"]}"#)
    try fixture.create("List/3", #"{"peers":["List/1"],"seen":["Item/4","Item/5"]}"#)
  }

  private mutating func expect(_ operation: KeyValueModel.Operation, _ changes: String...) throws {
    let commit = try fixture.commit(operation)
    #expect(try fixture.changes(commit) == changes)
    #expect(inconsistencies(in: fixture.model.state) == [])
  }

  @Test("An insertion tells the places afterwards and the members in order; the far sides are set")
  mutating func insertion() throws {
    try expect(
      .insert(#"["Item/5","Item/4"]"#, into: "List/1.items", at: [3, 0]),
      "List/1.items insertion [0, 3] + Item/4 Item/5", "List/2.items removal [0] - Item/4", "Item/4.list setting",
      "Item/5.list setting")
    try expect(.insert(#"["Item/5","Item/2","Item/4"]"#, into: "List/1.bag"), "List/1.bag insertion + Item/4 Item/5")
    try expect(.insert(#"["Item/1"]"#, into: "List/1.bag"))
    try expect(.insert(#"["Item/1"]"#, into: "List/3.seen"), "List/3.seen insertion [2] + Item/1")
    try expect(
      .insert(#"["List/1","List/2"]"#, into: "List/1.peers"),
      "List/1.peers insertion + List/1 List/2", "List/2.peers insertion + List/1")
  }

  @Test("A removal tells the places before; of what is no member nothing is told")
  mutating func removal() throws {
    try expect(
      .remove([2, 0], from: "List/1.items"), "List/1.items removal [0, 2] - Item/1 Item/3", "Item/1.list setting",
      "Item/3.list setting")
    try expect(.remove(#"["Item/9","Item/2","Item/1"]"#, from: "List/1.bag"), "List/1.bag removal - Item/1 Item/2")
    try expect(.remove(#"["Item/9"]"#, from: "List/1.bag"))
    try expect(.remove([], from: "List/1.items"))
  }

  @Test("A replacement tells the places with those that went and those that came, also where they are the same")
  mutating func replacement() throws {
    try expect(
      .replace([2, 0], of: "List/1.items", with: #"["Item/1","Item/4"]"#),
      "List/1.items replacement [0, 2] - Item/1 Item/3 + Item/4 Item/1", "Item/3.list setting",
      "List/2.items removal [0] - Item/4", "Item/4.list setting")
    try expect(.replace([0], of: "List/3.seen", with: #"["Item/4"]"#), "List/3.seen replacement [0] - Item/4 + Item/4")
    try expect(.mutate("List/1.bag", .set, #"["Item/3","Item/2"]"#), "List/1.bag replacement - Item/1 + Item/3")
  }

  @Test("A whole assignment is a setting, whatever it changes; the far sides tell what came and went")
  mutating func setting() throws {
    try expect(
      .set("List/1.items", to: #"["Item/3","Item/4","Item/1"]"#), "List/1.items setting", "Item/2.list setting",
      "List/2.items removal [0] - Item/4", "Item/4.list setting")
    try expect(.set("List/1.items", to: #"["Item/3","Item/4","Item/1"]"#), "List/1.items setting")
    try expect(
      .set("List/3.peers", to: #"["List/2"]"#), "List/3.peers setting", "List/1.peers removal - List/3",
      "List/2.peers insertion + List/3")
    try expect(.set("List/1.bag", to: "[]"), "List/1.bag setting")
  }

  @Test("A to-one that is set appends on the far side")
  mutating func fromTheOwnSide() throws {
    try expect(
      .set("Item/1.list", to: #""List/2""#), "Item/1.list setting", "List/1.items removal [0] - Item/1",
      "List/2.items insertion [1] + Item/1")
    try expect(.set("Item/1.list", to: #""List/2""#), "Item/1.list setting")
    try expect(.set("Item/1.list", to: "null"), "Item/1.list setting", "List/2.items removal [1] - Item/1")
  }

  @Test("Manual keys are silent, `changed` ones where nothing changed, on the far side too")
  mutating func silence() throws {
    try expect(.insert(#"["Item/1"]"#, into: "List/1.mutes"), "List/1.mutes insertion [0] + Item/1 silent")
    try expect(.set("List/1.calms", to: #"["Item/1","Item/2"]"#), "List/1.calms setting silent")
    try expect(
      .replace([1], of: "List/1.calms", with: #"["Item/2"]"#), "List/1.calms replacement [1] - Item/2 + Item/2 silent")
    try expect(
      .replace([1], of: "List/1.calms", with: #"["Item/3"]"#), "List/1.calms replacement [1] - Item/2 + Item/3")
    try expect(.set("Item/1.shelf", to: #""List/1""#), "Item/1.shelf setting", "List/1.quiet insertion + Item/1 silent")
    try expect(.set("Item/1.shelf", to: #""List/1""#), "Item/1.shelf setting silent")
    try expect(.set("List/1.name", to: "null"), "List/1.name setting silent")
    try expect(.set("List/1.name", to: #""x""#), "List/1.name setting")
    try expect(.set("List/1.note", to: #""x""#), "List/1.note setting silent")
  }

  @Test("A patch is one operation with all its keys, and a key that both comes and goes is a setting")
  mutating func patches() throws {
    try expect(
      .patch(try ref("List/1"), try body(#"{"name":"n","items":["Item/4"],"bag":["Item/5"]}"#)), "List/1.name setting",
      "List/1.items setting", "Item/1.list setting", "Item/2.list setting", "Item/3.list setting",
      "List/2.items removal [0] - Item/4", "Item/4.list setting", "List/1.bag setting")
    let commit = try fixture.commit(
      .set("List/2.items", to: #"["Item/1","Item/2"]"#), .set("List/3.items", to: #"["Item/1"]"#))
    #expect(commit.steps.count == 2)
    // One operation that removes a member from one object and adds it to another.
    try fixture.set("List/1", "peers", #"["List/2"]"#)
    try expect(
      .put(try ref("List/2"), try body(#"{"items":["Item/1"],"peers":["List/3"]}"#)), "List/2.items setting",
      "Item/2.list setting", "List/3.items removal [0] - Item/1", "Item/1.list setting", "List/2.peers setting",
      "List/1.peers removal - List/2", "List/3.peers insertion + List/2")
  }

  @Test("A deletion tells what the others lose, then every key of the object")
  mutating func deletion() throws {
    let changes = try fixture.changes(try fixture.commit(.delete("Item/4")))
    #expect(
      changes == [
        "List/2.items removal [0] - Item/4", "List/3.seen removal [0] - Item/4", "Item/4.list setting",
        "Item/4.shelf setting silent",
      ])
  }

  @Test("A creation sets every key, and the far sides of those that it gives")
  mutating func creation() throws {
    try expect(
      .create("Item/9", #"{"list":"List/2"}"#), "Item/9.list setting", "List/2.items insertion [1] + Item/9",
      "Item/9.shelf setting silent")
    try expect(
      .insert(#"[{"@ref":"Item/8"}]"#, into: "List/2.items", at: [0]), "Item/8.shelf setting silent",
      "List/2.items insertion [0] + Item/8", "Item/8.list setting")
  }

  @Test("Writes name every object that is different, each once, and `before` holds how they were")
  mutating func writes() throws {
    let commit = try fixture.commit(.insert(#"["Item/4","Item/5"]"#, into: "List/1.items", at: [0, 1]))
    #expect(Set(commit.steps[0].writes.map(\.object.text)) == ["List/1", "List/2", "Item/4", "Item/5"])
    #expect(commit.steps[0].writes.count == 4)
    #expect(commit.before.count == 4)
    #expect(commit.before.allSatisfy { $0.record.map { $0.revision < commit.revision } == true })
    #expect(commit.steps[0].writes.allSatisfy { $0.record?.revision == commit.revision })
  }
}
