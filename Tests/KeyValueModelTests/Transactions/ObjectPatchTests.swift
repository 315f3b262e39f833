import KeyValueModel
import Testing

@Suite("JSON Patch on objects")
struct ObjectPatchTests {
  static let schema = """
    entities:
      Item:
        keys:
          name: {type: string, optional: false}
          size: {type: integer, default: 1, notifies: changed}
          notes: {type: json}
          list: {toMany: Item, ordered: true, inverse: holder}
          holder: {toOne: Item, inverse: list}
          tags: {toMany: string}
          holderName: {computed: holder.name}
    """

  var fixture: Fixture

  init() throws {
    fixture = try Fixture(Self.schema)
    for id in 1...4 { try fixture.create("Item/\(id)", #"{"name":"n\#(id)"}"#) }
    try fixture.patch(
      "Item/1", #"{"size":5,"notes":{"a":[1,2,{"b":null}]},"list":["Item/2","Item/3"],"tags":["x","z"]}"#)
  }

  @Test("A document that is replaced by what GET gives sets nothing, computed numbers included")
  mutating func wholeAsRead() throws {
    var fixture = try Fixture(
      "entities: {Item: {keys: {size: {type: number}, half: {type: number, computed: 'size / 2.0'}}}}")
    try fixture.create("Item/1", #"{"size":10}"#)
    let commit = try fixture.commit(
      .jsonPatch("Item/1", #"[{"op":"replace","path":"","value":{"@ref":"Item/1","size":10,"half":5}}]"#))
    #expect(commit.steps.allSatisfy { if case .change(let changes) = $0.kind { changes.isEmpty } else { true } })
    #expect(
      throws: ModelError.self,
      performing: { try fixture.commit(.jsonPatch("Item/1", #"[{"op":"replace","path":"/half","value":5}]"#)) })
  }

  @Test(
    "Each key that the patch names is set as a whole, in the order in which they are named",
    arguments: [
      (#"{"op":"replace","path":"/name","value":"x"}"#, "name", #""x""#, ["name"]),
      (#"{"op":"add","path":"/size","value":6}"#, "size", "6", ["size"]),
      (#"{"op":"remove","path":"/size"}"#, "size", "null", ["size"]),
      (#"{"op":"replace","path":"/notes/a/2/b","value":[7]}"#, "notes", #"{"a":[1,2,{"b":[7]}]}"#, ["notes"]),
      (#"{"op":"remove","path":"/notes/a/0"}"#, "notes", #"{"a":[2,{"b":null}]}"#, ["notes"]),
      (#"{"op":"add","path":"/notes/c","value":1}"#, "notes", #"{"a":[1,2,{"b":null}],"c":1}"#, ["notes"]),
      (
        #"{"op":"add","path":"/list/0","value":"Item/4"}"#, "list", #"["Item/4","Item/2","Item/3"]"#,
        ["list", "holder"]
      ),
      (
        #"{"op":"add","path":"/list/-","value":"Item/4"}"#, "list", #"["Item/2","Item/3","Item/4"]"#,
        ["list", "holder"]
      ),
      (#"{"op":"remove","path":"/list/0"}"#, "list", #"["Item/3"]"#, ["list", "holder"]),
      (#"{"op":"move","from":"/list/0","path":"/list/1"}"#, "list", #"["Item/3","Item/2"]"#, ["list"]),
      (#"{"op":"remove","path":"/list"}"#, "list", "[]", ["list", "holder", "holder"]),
      (#"{"op":"add","path":"/tags/0","value":"y"}"#, "tags", #"["x","y","z"]"#, ["tags"]),
      (#"{"op":"copy","from":"/name","path":"/notes"}"#, "notes", #""n1""#, ["notes"]),
      (#"{"op":"move","from":"/notes/a/1","path":"/size"}"#, "size", "2", ["notes", "size"]),
      (#"{"op":"test","path":"/@ref","value":"Item/1"}"#, "name", #""n1""#, []),
      (#"{"op":"test","path":"/list","value":["Item/2","Item/3"]}"#, "size", "5", []),
      (
        #"{"op":"test","path":"/holderName","value":null},{"op":"replace","path":"/size","value":5}"#, "size", "5",
        ["size"]
      ),
      (#"{"op":"replace","path":"/size","value":9},{"op":"replace","path":"/size","value":7}"#, "size", "7", ["size"]),
      (#"{"op":"add","path":"/holder","value":"Item/1"}"#, "holder", #""Item/1""#, ["holder", "list"]),
    ])
  mutating func patches(patch: String, key: String, result: String, keys: [String]) throws {
    let commit = try fixture.commit(.jsonPatch("Item/1", "[\(patch)]"))
    #expect(try fixture.value("Item/1", key) == result)
    let changes = try fixture.changes(commit)
    #expect(changes.map { String($0.split(separator: " ")[0].split(separator: ".")[1]) } == keys)
    #expect(changes.filter { $0.hasPrefix("Item/1.") }.allSatisfy { $0.contains("setting") || key == "holder" })
    #expect(inconsistencies(in: fixture.model.state) == [])
  }

  @Test("A patch of the whole document sets what is different then; what it leaves out has no value")
  mutating func wholeDocument() throws {
    let commit = try fixture.commit(
      .jsonPatch("Item/1", #"[{"op":"replace","path":"","value":{"name":"n1","size":6,"list":["Item/2"]}}]"#))
    let touched = Set(try fixture.changes(commit).filter { $0.hasPrefix("Item/1.") })
    #expect(touched == ["Item/1.size setting", "Item/1.notes setting", "Item/1.list setting", "Item/1.tags setting"])
    #expect(try (fixture.value("Item/1", "notes"), fixture.value("Item/1", "tags")) == ("null", "[]"))
    #expect(try fixture.value("Item/3", "holder") == "null")
    #expect(
      try fixture.error([.jsonPatch("Item/1", #"[{"op":"replace","path":"","value":{}}]"#)]).code == .nullNotAllowed)
  }

  @Test(
    "A patch that cannot be is refused by what is wrong with it, and names its operation",
    arguments: [
      (#"{"op":"test","path":"/name","value":"x"}"#, ModelError.Code.patchTestFailed),
      (#"{"op":"test","path":"/list","value":["Item/3","Item/2"]}"#, .patchTestFailed),
      (#"{"op":"test","path":"/nope","value":null}"#, .invalidValue),
      (#"{"op":"remove","path":"/nope"}"#, .invalidValue),
      (#"{"op":"replace","path":"/list/2","value":"Item/4"}"#, .invalidValue),
      (#"{"op":"add","path":"/list/01","value":"Item/4"}"#, .invalidValue),
      (#"{"op":"add","path":"/nope","value":1}"#, .invalidValue), (#"{"op":"remove","path":"/name"}"#, .nullNotAllowed),
      (#"{"op":"replace","path":"/holderName","value":"x"}"#, .readOnlyKey),
      (#"{"op":"replace","path":"/size","value":"x"}"#, .invalidValue),
      (#"{"op":"add","path":"/list/-","value":"Item/2"}"#, .invalidValue),
      (#"{"op":"add","path":"/list/-","value":null}"#, .nullNotAllowed),
      (#"{"op":"replace","path":"/@ref","value":"Item/2"}"#, .invalidValue),
      (#"{"op":"remove","path":""}"#, .invalidValue),
      (#"{"op":"replace","path":"","value":[]}"#, .invalidValue),
      (#"{"op":"replace","path":"/list","value":null}"#, .nullNotAllowed),
    ])
  mutating func refused(patch: String, code: ModelError.Code) throws {
    let error = try fixture.error([.jsonPatch("Item/1", #"[{"op":"add","path":"/size","value":9},\#(patch)]"#)])
    #expect((error.code, error.object) == (code, "Item/1"), "\(error)")
    if code == .patchTestFailed { #expect(error.detail.hasPrefix("operation 1 of the patch: ")) }
    #expect(try fixture.error([.jsonPatch("Item/9", "[]")]).code == .unknownObject)
  }

  @Test("The test of a patch sees what the operations before it did, those of the transaction too")
  mutating func order() throws {
    try fixture.commit(
      .set("Item/1.size", to: "8"),
      .jsonPatch(
        "Item/1",
        #"[{"op":"test","path":"/size","value":8},{"op":"replace","path":"/size","value":9},"#
          + #"{"op":"test","path":"/size","value":9.0}]"#
      ))
    #expect(try fixture.value("Item/1", "size") == "9")
    #expect(fixture.model.state.record(try ref("Item/1"))?.revision == fixture.model.revision)
  }
}
