import KeyValueModel
import Testing

@Suite("Key paths")
struct KeyPathTests {
  static let schema = """
    entities:
      A: {keys: {x: {type: integer}, j: {type: json}, b: {toOne: B}, bx: {computed: b.y}}}
      B: {keys: {y: {type: integer}, a: {toOne: A}}}
      B2: {extends: B, keys: {z: {type: integer}}}
    """

  @Test(
    "Texts that name keys one behind the other are key paths",
    arguments: ["x", "b", "b.y", "b.a.b.a.x", "bx", Array(repeating: "b.a", count: 15).joined(separator: ".") + ".b.y"])
  func valid(text: String) throws {
    let schema = try Schema(yaml: Self.schema)
    let path = try schema.resolve(text, from: schema.entities[0])
    #expect(path.text == text)
    #expect(path.keys.count == text.split(separator: ".").count)
  }

  @Test(
    "Other texts are refused by what is wrong with them",
    arguments: [
      ("", ModelError.Code.malformedKeyPath), (".", .malformedKeyPath), ("x.", .malformedKeyPath),
      (".x", .malformedKeyPath), ("b..y", .malformedKeyPath), ("b y", .malformedKeyPath), ("b.1", .malformedKeyPath),
      ("é", .malformedKeyPath), ("b.\u{301}y", .malformedKeyPath), ("b.@size", .malformedKeyPath),
      ("@count", .malformedKeyPath), ("b.@sum", .malformedKeyPath), ("b.@count.y", .malformedKeyPath),
      ("b.@sum.@count", .malformedKeyPath), ("x\n", .malformedKeyPath),
      (Array(repeating: "b.a", count: 16).joined(separator: ".") + ".b", .malformedKeyPath),
      ("nope", .undefinedKey), ("b.nope", .undefinedKey), ("x.y", .undefinedKey), ("j.y", .undefinedKey),
      ("bx.y", .undefinedKey), ("b.z", .undefinedKey), ("X", .undefinedKey), ("b.@count", .notACollection),
      ("b.@sum.y", .notACollection),
    ])
  func invalid(text: String, code: ModelError.Code) throws {
    let schema = try Schema(yaml: Self.schema)
    let error = try #require(throws: ModelError.self) { try schema.resolve(text, from: schema.entities[0]) }
    #expect(error.code == code)
    #expect(error.keyPath == text)
  }

  @Test("Reading goes through relationships and computed keys, and is null behind a null")
  func reading() throws {
    var fixture = try Fixture(Self.schema)
    try fixture.create("A/1", #"{"x":1}"#)
    #expect(try fixture.value("A/1", "b.y") == "null")
    #expect(try fixture.value("A/1", "b.a.b.a.x") == "null")
    try fixture.create("B2/1", #"{"y":7,"z":8,"a":"A/1"}"#)
    try fixture.set("A/1", "b", "\"B2/1\"")
    #expect(try fixture.value("A/1", "b") == "\"B2/1\"")
    #expect(try fixture.value("A/1", "bx") == "7")
    #expect(try fixture.value("A/1", "b.a.b.a.x") == "1")
    // After a to-one to the parent, the subclass's key does not exist; on the object itself it does.
    #expect(try fixture.value("B2/1", "z") == "8")
    #expect(throws: ModelError.self) { try fixture.value("A/1", "b.z") }
  }

  @Test("The ETag of a path is the latest of the objects along it, that of an object of what its computed keys read")
  func revisions() throws {
    var fixture = try Fixture(Self.schema)
    try fixture.create("B/1", #"{"y":1}"#)
    try fixture.create("A/1", #"{"b":"B/1"}"#)
    func along(_ text: String) throws -> Revision {
      let path = try fixture.model.schema.resolve(text, from: fixture.model.schema.entities[0])
      return fixture.model.state.revision(of: try ref("A/1"), along: path)
    }
    try fixture.set("B/1", "y", "2")
    #expect(try (along("x"), along("b"), along("b.y"), along("bx")) == (2, 2, 3, 3))
    #expect(fixture.model.state.revision(of: try ref("A/1")) == 3)
    #expect(fixture.model.state.record(try ref("A/1"))?.revision == 2)
    try fixture.set("A/1", "x", "2")
    #expect(try (along("x"), along("b.y")) == (4, 4))
    #expect(fixture.model.state.revision(of: try ref("A/9")) == 0)
  }
}
