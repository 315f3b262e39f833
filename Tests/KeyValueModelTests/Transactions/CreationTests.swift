import KeyValueModel
import Testing

@Suite("Creating, putting, patching and setting")
struct CreationTests {
  static let schema = """
    entities:
      Person:
        keys:
          name: {type: string, optional: false, minLength: 1, maxLength: 5, pattern: '^\\w+$'}
          age: {type: integer, minimum: 0, maximum: 150, default: 18}
          height: {type: number}
          grade: {type: string, enum: [a, b]}
          born: {type: date}
          active: {type: boolean, default: true}
          notes: {type: json}
          friend: {toOne: Person}
          friendName: {computed: friend.name}
      Pupil:
        extends: Person
        keys: {school: {type: string, default: none}}
    """

  var fixture: Fixture

  init() throws {
    fixture = try Fixture(Self.schema)
  }

  private func keys(_ commit: Commit) -> [String] {
    commit.steps.flatMap { step -> [String] in
      guard case .change(let changes) = step.kind else { return ["bracket"] }
      return changes.map { change in
        let name = fixture.model.state.record(change.object)?.entity.keys[change.key].name
        return name ?? "?"
      }
    }
  }

  @Test("Creating fills in defaults and nulls, and takes the values in the form of their types")
  mutating func defaults() throws {
    try fixture.create("Person/1", #"{"name":"Ann","height":2,"age":30.0,"@ref":"Person/1","@revision":99}"#)
    let record = try #require(fixture.model.state.record(try ref("Person/1")))
    #expect(
      Array(record.values) == [
        .string("Ann"), .integer(30), .number(2), .null, .null, .bool(true), .null, .null,
      ])
    #expect((record.revision, record.createdAt) == (1, 1))
    try fixture.create("Pupil/1", #"{"name":"Bob","active":null}"#)
    #expect(try fixture.value("Pupil/1", "school") == "\"none\"")
    // An explicit null stays null: defaults are for missing keys.
    #expect(try fixture.value("Pupil/1", "active") == "null")
    #expect(
      fixture.model.state.references(of: fixture.model.schema.entities[0]).map(\.text) == ["Person/1", "Pupil/1"])
  }

  @Test("Putting touches the keys in the body and those whose value really changes")
  mutating func put() throws {
    try fixture.put("Person/1", #"{"name":"Ann","height":2,"notes":{"a":1}}"#)
    let commit = try fixture.commit(.put(try ref("Person/1"), try body(#"{"height":2,"name":"Eve"}"#)))
    #expect(keys(commit) == ["name", "height", "notes"])
    let record = try #require(fixture.model.state.record(try ref("Person/1")))
    #expect(record.values.map(\.json) == ["\"Eve\"", "18", "2", "null", "null", "true", "null", "null"])
    #expect((record.revision, record.createdAt) == (2, 1))
    #expect(try fixture.error([.put(try ref("Person/1"), [:])]).code == .nullNotAllowed)
  }

  @Test("Putting what is there already sets the keys of the body all the same")
  mutating func putEqual() throws {
    try fixture.put("Person/1", #"{"name":"Ann"}"#)
    let commit = try fixture.commit(.put(try ref("Person/1"), try body(#"{"name":"Ann"}"#)))
    #expect(keys(commit) == ["name"])
    #expect(fixture.model.state.record(try ref("Person/1"))?.revision == 2)
  }

  @Test("A patch sets the keys of its body in their order, and null sets to null, not to the default")
  mutating func patch() throws {
    try fixture.create("Person/1", #"{"name":"Ann","age":3}"#)
    let commit = try fixture.commit(.patch(try ref("Person/1"), try body(#"{"height":1.5,"age":null,"name":"Bo"}"#)))
    #expect(keys(commit) == ["height", "age", "name"])
    #expect(try fixture.value("Person/1", "age") == "null")
    #expect(keys(try fixture.commit(.patch(try ref("Person/1"), [:]))) == [])
    #expect(fixture.model.revision == 3, "a transaction takes a revision even if it changed nothing")
    #expect(fixture.model.state.record(try ref("Person/1"))?.revision == 2)
  }

  @Test(
    "A patch of a json attribute is a merge patch, as in appendix A of RFC 7396",
    arguments: [
      (#"{"a":"b"}"#, #"{"a":"c"}"#, #"{"a":"c"}"#), (#"{"a":"b"}"#, #"{"b":"c"}"#, #"{"a":"b","b":"c"}"#),
      (#"{"a":"b"}"#, #"{"a":null}"#, "{}"), (#"{"a":"b","b":"c"}"#, #"{"a":null}"#, #"{"b":"c"}"#),
      (#"{"a":["b"]}"#, #"{"a":"c"}"#, #"{"a":"c"}"#), (#"{"a":"c"}"#, #"{"a":["b"]}"#, #"{"a":["b"]}"#),
      (#"{"a":{"b":"c"}}"#, #"{"a":{"b":"d","c":null}}"#, #"{"a":{"b":"d"}}"#),
      (#"{"a":[{"b":"c"}]}"#, #"{"a":[1]}"#, #"{"a":[1]}"#), (#"["a","b"]"#, #"["c","d"]"#, #"["c","d"]"#),
      (#"{"a":"b"}"#, #"["c"]"#, #"["c"]"#), (#"{"a":"foo"}"#, "null", "null"), (#"{"a":"foo"}"#, #""bar""#, #""bar""#),
      (#"{"e":null}"#, #"{"a":1}"#, #"{"e":null,"a":1}"#), ("[1,2]", #"{"a":"b","c":null}"#, #"{"a":"b"}"#),
      ("{}", #"{"a":{"bb":{"ccc":null}}}"#, #"{"a":{"bb":{}}}"#), ("null", #"{"a":{}}"#, #"{"a":{}}"#),
    ])
  mutating func mergePatch(original: String, patch: String, result: String) throws {
    try fixture.create("Person/1", "{\"name\":\"A\",\"notes\":\(original)}")
    try fixture.patch("Person/1", "{\"notes\":\(patch)}")
    #expect(try fixture.value("Person/1", "notes") == result)
    // Setting a key does not merge.
    try fixture.set("Person/1", "notes", patch)
    #expect(try fixture.value("Person/1", "notes") == json(patch).json)
  }

  @Test("Setting goes through paths, also through computed keys, to the object that has the key")
  mutating func paths() throws {
    try fixture.create("Person/1", #"{"name":"Ann"}"#)
    try fixture.create("Person/2", #"{"name":"Bob","friend":"Person/1"}"#)
    let commit = try fixture.commit(.set(try ref("Person/2"), keyPath: "friend.age", .integer(7)))
    #expect(try fixture.value("Person/1", "age") == "7")
    #expect(commit.results.map(\.text) == ["Person/2"])
    #expect(commit.before.map(\.object.text) == ["Person/1"])
    let error = try fixture.error([.set(try ref("Person/1"), keyPath: "friend.age", .null)])
    #expect((error.code, error.object, error.keyPath) == (.nullInKeyPath, "Person/1", "friend.age"))
  }

  @Test(
    "Values that a key does not take are refused",
    arguments: [
      ("name", "\"\""), ("name", "\"abcdef\""), ("name", "\"a b\""), ("name", "1"), ("age", "-1"), ("age", "151"),
      ("age", "1.5"), ("age", "1e30"), ("age", "\"1\""), ("age", "true"), ("height", "\"1\""), ("height", "[1]"),
      ("grade", "\"c\""), ("grade", "1"), ("born", "\"2010-02-30\""), ("born", "2010"), ("active", "0"),
      ("active", "\"true\""), ("friend", "\"Person/9\""), ("friend", "\"Person\""), ("friend", "7"), ("friend", "{}"),
      ("age", "9223372036854775808"),
    ])
  mutating func invalid(key: String, value: String) throws {
    try fixture.create("Person/1", #"{"name":"Ann"}"#)
    let person = try ref("Person/1")
    var values = try body("{\"name\":\"Ann\"}")
    values[key] = try json(value)
    for operation: Operation in [
      .set(person, keyPath: key, try json(value)), .patch(person, [key: try json(value)]), .put(person, values),
    ] {
      let error = try fixture.error([operation])
      #expect(error.code == .invalidValue, "\(error)")
      #expect((error.object, error.keyPath) == ("Person/1", key))
    }
  }

  @Test("Lengths count Unicode scalars")
  mutating func lengths() throws {
    try fixture.create("Person/1", #"{"name":"ééééé"}"#)
    #expect(
      try fixture.error([.set(try ref("Person/1"), keyPath: "name", .string("e\u{301}e\u{301}e\u{301}"))]).code
        == .invalidValue)
  }

  @Test("Integers are exact to the last bit, and whole doubles become integers")
  mutating func integers() throws {
    var fixture = try Fixture("entities: {N: {keys: {i: {type: integer}, n: {type: number}}}}")
    try fixture.create("N/1", #"{"i":9223372036854775807,"n":0.1}"#)
    #expect(try fixture.value("N/1", "i") == "9223372036854775807")
    try fixture.patch("N/1", #"{"i":-9223372036854775808,"n":1e300}"#)
    #expect(try (fixture.value("N/1", "i"), fixture.value("N/1", "n")) == ("-9223372036854775808", "1e+300"))
    try fixture.patch("N/1", #"{"i":1e3,"n":7}"#)
    #expect(try (fixture.value("N/1", "i"), fixture.value("N/1", "n")) == ("1000", "7"))
  }
}
