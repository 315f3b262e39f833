import KeyValueModel
import Testing

@Suite("Set operations")
struct SetOperationTests {
  static let schema = """
    entities:
      Person: {keys: {friends: {toMany: Person, inverse: friends}, likes: {toMany: Person}, tags: {toMany: string}}}
      Group: {keys: {members: {toMany: Person}, list: {toMany: Person, ordered: true}}}
    """

  var fixture: Fixture

  init() throws {
    fixture = try Fixture(Self.schema)
    for id in 1...6 { try fixture.create("Person/\(id)") }
    try fixture.set("Person/1", "tags", #"["b","c"]"#)
    try fixture.set("Person/1", "friends", #"["Person/2","Person/3"]"#)
    try fixture.set("Person/1", "likes", #"["Person/2","Person/3"]"#)
    try fixture.create("Group/1")
  }

  @Test(
    "Union adds, minus and intersect take out, set does both; only what really came and went is told",
    arguments: [
      (.union, "", "bc", ""), (.union, "bc", "bc", ""), (.union, "dab", "abcd", #"insertion + "a" "d""#),
      (.minus, "", "bc", ""), (.minus, "xa", "bc", ""), (.minus, "cxb", "", #"removal - "b" "c""#),
      (.intersect, "bc", "bc", ""), (.intersect, "abcd", "bc", ""), (.intersect, "", "", #"removal - "b" "c""#),
      (.intersect, "cx", "c", #"removal - "b""#), (.set, "bc", "bc", ""), (.set, "", "", #"replacement - "b" "c""#),
      (.set, "cb", "bc", ""), (.set, "abcd", "abcd", #"replacement + "a" "d""#),
      (.set, "b", "b", #"replacement - "c""#),
      (.set, "dc", "cd", #"replacement - "b" + "d""#),
    ] as [(SetMutation, String, String, String)])
  mutating func mutations(mutation: SetMutation, members: String, result: String, told: String) throws {
    let commit = try fixture.commit(.mutate("Person/1.tags", mutation, "\(members.map(String.init))"))
    #expect(try fixture.value("Person/1", "tags").filter(\.isLetter) == result)
    #expect(try fixture.changes(commit) == (told.isEmpty ? [] : ["Person/1.tags \(told)"]))
    #expect(commit.results.count == 1)
  }

  @Test(
    "With objects the far sides follow, or the referrers do",
    arguments: [
      (.union, #"["Person/4","Person/2"]"#, "234"), (.minus, #"["Person/3","Person/5"]"#, "2"),
      (.intersect, #"["Person/3","Person/4"]"#, "3"), (.set, #"["Person/1","Person/3","Person/6"]"#, "136"),
      (.set, "[]", ""),
    ] as [(SetMutation, String, String)])
  mutating func objects(mutation: SetMutation, members: String, result: String) throws {
    try fixture.commit(.mutate("Person/1.friends", mutation, members), .mutate("Person/1.likes", mutation, members))
    for key in ["friends", "likes"] {
      #expect(try fixture.value("Person/1", key).filter(\.isNumber) == result)
    }
    #expect(inconsistencies(in: fixture.model.state) == [])
    for id in 1...6 {
      let isFriend = result.contains("\(id)")
      #expect(try fixture.value("Person/\(id)", "friends").contains("Person/1") == isFriend)
    }
  }

  @Test("An ordered collection takes no set operation, and members are checked as everywhere")
  mutating func refused() throws {
    let cases: [(KeyValueModel.Operation, ModelError.Code)] = try [
      (.mutate("Group/1.list", .union, "[]"), .notACollection), (.mutate("Group/1.nope", .union, "[]"), .undefinedKey),
      (.mutate("Group/1.members", .union, #"["Group/1"]"#), .wrongEntity),
      (.mutate("Group/1.members", .union, #"["Person/9"]"#), .invalidValue),
      (.mutate("Group/1.members", .set, "[null]"), .nullNotAllowed),
      (.mutate("Person/1.tags", .union, "[1]"), .invalidValue),
      (.mutate("Person/1.friends", .minus, #"["Person/2",{"@ref":"Person/9"}]"#), .invalidValue),
      (.mutate("Person/1.friends", .intersect, #"[{"@ref":"Person/9","friends":["Person/1"]}]"#), .invalidValue),
    ]
    for (operation, code) in cases {
      let error = try fixture.error([operation])
      #expect(error.code == code, "\(error)")
    }
  }
}
