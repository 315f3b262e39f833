import Testing

@testable import KeyValueModel

@Suite("Indexed keys")
struct IndexTests {
  static let schema = """
    entities:
      Person:
        keys:
          name: {type: string, indexed: true}
          age: {type: integer}
          born: {type: date, indexed: true}
          friend: {toOne: Person, indexed: true}
          mate: {toOne: Person, inverse: mate, indexed: true}
          notes: {type: json, indexed: true}
      Pupil: {extends: Person, keys: {school: {type: string, indexed: true}}}
    """

  var fixture: Fixture

  init() throws {
    fixture = try Fixture(Self.schema)
    try fixture.create("Person/2", #"{"name":"a"}"#)
    try fixture.create("Person/1", #"{"name":"a","friend":"Person/2","born":"2020-01-01T00:00:00Z"}"#)
    try fixture.create("Pupil/1", #"{"name":"a","school":"s","born":"2020-01-01T02:00:00+02:00"}"#)
    try fixture.create("Pupil/2", #"{"name":"b","mate":"Person/1","notes":{"a":[1]}}"#)
  }

  private func found(_ entity: String, _ key: String, _ value: Value) throws -> [String]? {
    let entity = try fixture.model.schema.requireEntity(entity)
    let index = try #require(entity.indexOfKey(key))
    return fixture.model.state.references(of: entity, whereKey: index, is: value)?.map(\.text)
  }

  @Test("Objects are found by their value, in order, those of subclasses with them")
  func finding() throws {
    #expect(try found("Person", "name", .string("a")) == ["Person/1", "Person/2", "Pupil/1"])
    #expect(try found("Pupil", "name", .string("a")) == ["Pupil/1"])
    #expect(try found("Pupil", "school", .string("s")) == ["Pupil/1"])
    #expect(try found("Pupil", "school", .null) == ["Pupil/2"])
    #expect(try found("Person", "name", .string("A")) == [])
    #expect(try found("Person", "notes", json(#"{"a":[1]}"#)) == ["Pupil/2"])
    #expect(try found("Person", "age", .null) == nil, "a key without index is no way to find anything")
    #expect(inconsistencies(in: fixture.model.state) == [])
  }

  @Test("Dates are found by instant, references by what they name")
  func instants() throws {
    for text in ["2020-01-01T00:00:00Z", "2020-01-01T01:00:00+01:00", "2020-01-01T00:00:00.000Z"] {
      #expect(try found("Person", "born", .string(text)) == ["Person/1", "Pupil/1"])
    }
    #expect(try found("Person", "friend", .reference(ref("Person/2"))) == ["Person/1"])
    #expect(try found("Person", "mate", .reference(ref("Pupil/2"))) == ["Person/1"])
  }

  @Test("Setting, the far side of an inverse, nullified references and deletions move objects")
  mutating func moving() throws {
    try fixture.set("Person/1", "name", #""c""#)
    #expect(
      try (found("Person", "name", .string("a")), found("Person", "name", .string("c"))) == (
        ["Person/2", "Pupil/1"], ["Person/1"]
      ))
    try fixture.set("Person/2", "mate", #""Person/1""#)
    #expect(try found("Person", "mate", .reference(ref("Person/1"))) == ["Person/2"])
    #expect(try found("Person", "mate", .null) == ["Pupil/1", "Pupil/2"])
    try fixture.delete("Person/2")
    #expect(try found("Person", "friend", .reference(ref("Person/2"))) == [])
    #expect(try found("Person", "friend", .null) == ["Person/1", "Pupil/1", "Pupil/2"])
    try fixture.delete("Pupil/2")
    #expect(try found("Person", "name", .string("b")) == [])
    #expect(inconsistencies(in: fixture.model.state, others: ([], [.string("a"), .string("b"), .null])) == [])
  }

  @Test("A failed transaction leaves the indexes as they were")
  mutating func failing() throws {
    _ = try fixture.error([
      .set("Person/1.name", to: #""z""#), .delete("Person/2"), .create("Person/2", #"{"name":"y"}"#),
      .delete("Pupil/1"), .set("Pupil/2.mate", to: "null"), .delete("Pupil/1"),
    ])
    #expect(inconsistencies(in: fixture.model.state, others: ([], [.string("z"), .string("y")])) == [])
  }
}
