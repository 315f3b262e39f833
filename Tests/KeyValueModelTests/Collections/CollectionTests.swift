import KeyValueModel
import Testing

@Suite("Collections by index and by member")
struct CollectionTests {
  static let schema = """
    entities:
      List:
        keys:
          items: {toMany: Item, ordered: true}
          bag: {toMany: Item}
          scores: {toMany: integer, ordered: true, minimum: 0}
          tags: {toMany: string, maxLength: 3}
          days: {toMany: date}
          next: {toOne: List}
          count: {type: integer, computed: items.@count}
      Item: {keys: {name: {type: string}, peer: {toOne: Item}}}
      Special: {extends: Item, keys: {extra: {type: string, default: none}}}
    """

  var fixture: Fixture

  init() throws {
    fixture = try Fixture(Self.schema)
    for id in 1...9 { try fixture.create("Item/\(id)") }
    try fixture.create("Special/1")
    try fixture.create("List/1", #"{"items":["Item/1","Item/2","Item/3"],"bag":["Item/2","Item/1"],"scores":[5,3]}"#)
    try fixture.create("List/2", #"{"next":"List/1"}"#)
  }

  /// The ids of the members.
  private func ids(_ keyPath: String, of list: String = "List/1") throws -> String {
    try fixture.value(list, keyPath).filter(\.isNumber)
  }

  @Test(
    "Members are inserted at the places that they have afterwards, in whatever order the pairs come",
    arguments: [
      (["Item/4"], nil, "1234"), (["Item/5", "Item/4"], nil, "12354"), (["Item/4"], [0], "4123"),
      (["Item/4"], [3], "1234"), (["Item/4", "Item/5"], [0, 2], "41523"), (["Item/4", "Item/5"], [2, 0], "51423"),
      (["Item/4", "Item/5", "Item/6"], [4, 5, 3], "123645"), (["Item/4", "Item/5"], [4, 0], "51234"), ([], [], "123"),
      ([], nil, "123"),
    ] as [([String], [Int]?, String)])
  mutating func insertion(members: [String], places: [Int]?, result: String) throws {
    try fixture.commit(.insert("\(members)", into: "List/1.items", at: places))
    #expect(try ids("items") == result)
    #expect(try fixture.value("List/1", "count") == "\(result.count)")
    #expect(inconsistencies(in: fixture.model.state) == [])
  }

  @Test(
    "Members are taken out by the places that they had before, or by what they are",
    arguments: [
      ([0], nil, "23"), ([2, 0], nil, "2"), ([0, 1, 2], nil, ""), ([], nil, "123"), (nil, #"["Item/2"]"#, "13"),
      (nil, #"["Item/3","Item/9","Item/1","Item/3"]"#, "2"), (nil, #"["Item/99"]"#, "123"), (nil, "[]", "123"),
    ] as [([Int]?, String?, String)])
  mutating func removal(places: [Int]?, members: String?, result: String) throws {
    if let places { try fixture.commit(.remove(places, from: "List/1.items")) }
    if let members { try fixture.commit(.remove(members, from: "List/1.items")) }
    #expect(try ids("items") == result)
    #expect(inconsistencies(in: fixture.model.state) == [])
  }

  @Test(
    "Members are replaced at their places, also by one another",
    arguments: [
      ([1], ["Item/4"], "143"), ([2, 0], ["Item/4", "Item/5"], "524"), ([0, 1], ["Item/2", "Item/1"], "213"),
      ([0], ["Item/1"], "123"), ([0, 1, 2], ["Item/3", "Item/4", "Item/1"], "341"), ([], [], "123"),
    ])
  mutating func replacement(places: [Int], members: [String], result: String) throws {
    try fixture.commit(.replace(places, of: "List/1.items", with: "\(members)"))
    #expect(try ids("items") == result)
    #expect(inconsistencies(in: fixture.model.state) == [])
  }

  @Test("An unordered collection keeps its members in the order of references, and takes each once")
  mutating func unordered() throws {
    try fixture.commit(.insert(#"["Item/9","Item/1","Special/1","Item/3","Item/9"]"#, into: "List/1.bag"))
    #expect(try fixture.value("List/1", "bag") == #"["Item/1","Item/2","Item/3","Item/9","Special/1"]"#)
    try fixture.set("List/1", "bag", #"["Item/7","Item/5","Item/7"]"#)
    #expect(try ids("bag") == "57")
    #expect(inconsistencies(in: fixture.model.state) == [])
  }

  @Test("A whole collection can be set, emptied and left out, but is never null")
  mutating func whole() throws {
    try fixture.set("List/1", "items", #"["Item/9","Special/1","Item/1"]"#)
    #expect(try fixture.value("List/1", "items") == #"["Item/9","Special/1","Item/1"]"#)
    try fixture.put("List/1", #"{"bag":[]}"#)
    #expect(try (fixture.value("List/1", "items"), fixture.value("List/1", "bag")) == ("[]", "[]"))
    #expect(try fixture.error([.set("List/1.items", to: "null")]).code == .nullNotAllowed)
    #expect(try fixture.error([.create("List/3", #"{"items":null}"#)]).code == .nullNotAllowed)
    #expect(try fixture.error([.set("List/1.items", to: #""Item/1""#)]).code == .invalidValue)
    #expect(try fixture.error([.set("List/1.items", to: #"["Item/1","Item/2","Item/1"]"#)]).code == .invalidValue)
    #expect(inconsistencies(in: fixture.model.state) == [])
  }

  @Test("Values are members in the form of their type, each once")
  mutating func values() throws {
    try fixture.commit(
      .insert("[4.0]", into: "List/1.scores", at: [1]), .insert(#"["b","a","b"]"#, into: "List/1.tags"),
      .remove("[5.0,77]", from: "List/1.scores"), .insert(#"["2020-01-01"]"#, into: "List/1.days"))
    #expect(try (fixture.value("List/1", "scores"), fixture.value("List/1", "tags")) == ("[4,3]", #"["a","b"]"#))
    for operation: KeyValueModel.Operation in try [
      .insert("[-1]", into: "List/1.scores"), .insert("[1.5]", into: "List/1.scores"),
      .insert("[3]", into: "List/1.scores"), .insert(#"["long"]"#, into: "List/1.tags"),
      .insert(#"["x",1]"#, into: "List/1.tags"), .insert(#"["soon"]"#, into: "List/1.days"),
      .set("List/1.scores", to: "[7,7.0]"), .insert(#"[{"@ref":"Item/77"}]"#, into: "List/1.tags"),
    ] {
      #expect(try fixture.error([operation]).code == .invalidValue)
    }
  }

  @Test("A key path leads to the collection; the objects on the way must be there")
  mutating func paths() throws {
    let commit = try fixture.commit(.insert(#"["Item/4"]"#, into: "List/2.next.items", at: [0]))
    #expect(try ids("items") == "4123")
    #expect(commit.results.map(\.text) == ["List/2"])
    #expect(commit.before.map(\.object.text) == ["List/1"])
    let error = try fixture.error([.insert(#"["Item/4"]"#, into: "List/1.next.items")])
    #expect((error.code, error.object, error.keyPath) == (.nullInKeyPath, "List/1", "next.items"))
  }

  @Test(
    "Places that are not there, or are named twice, are out of range",
    arguments: [
      "insert 4", "insert -1", "insert 0 0", "insert 5 0", "remove 3", "remove -1", "remove 0 0", "replace 3",
      "replace 1 1", "bag insert 0", "bag remove 0", "bag replace 0",
    ])
  mutating func ranges(text: String) throws {
    var words = text.split(separator: " ").map(String.init)
    let place = words[0] == "bag" ? "List/1.\(words.removeFirst())" : "List/1.items"
    let indexes = words.dropFirst().compactMap(Int.init)
    let members = "\(indexes.indices.map { "Item/\($0 + 4)" })"
    let error = try fixture.error([
      words[0] == "insert"
        ? .insert(members, into: place, at: indexes)
        : words[0] == "remove" ? .remove(indexes, from: place) : .replace(indexes, of: place, with: members)
    ])
    #expect(error.code == .indexOutOfRange, "\(error)")
    #expect((error.object, error.keyPath) == ("List/1", place.hasSuffix("bag") ? "bag" : "items"))
  }

  @Test("A value that cannot be a member is refused with its own error")
  mutating func refused() throws {
    let cases: [(KeyValueModel.Operation, ModelError.Code)] = try [
      (.insert(#"["Item/1"]"#, into: "List/1.items"), .invalidValue),
      (.insert(#"["Item/4","Item/4"]"#, into: "List/1.items"), .invalidValue),
      (.insert(#"["Item/4"]"#, into: "List/1.items", at: [0, 1]), .invalidValue),
      (.insert(#"["Item/4","Item/5"]"#, into: "List/1.items", at: [0]), .invalidValue),
      (.replace([0], of: "List/1.items", with: #"["Item/3"]"#), .invalidValue),
      (.replace([0], of: "List/1.items", with: "[]"), .invalidValue),
      (.insert(#"["Item/99"]"#, into: "List/1.items"), .invalidValue),
      (.insert("[7]", into: "List/1.bag"), .invalidValue),
      (.insert("[{}]", into: "List/1.bag"), .invalidValue), (.insert(#"["Item"]"#, into: "List/1.bag"), .invalidValue),
      (.insert(#"["List/1"]"#, into: "List/1.items"), .wrongEntity),
      (.insert(#"["Nobody/1"]"#, into: "List/1.bag"), .wrongEntity),
      (.set("List/1.bag", to: #"["List/1"]"#), .wrongEntity),
      (.insert("[null]", into: "List/1.items"), .nullNotAllowed),
      (.insert("[null]", into: "List/1.tags"), .nullNotAllowed),
      (.set("List/1.items", to: "[null]"), .nullNotAllowed), (.remove("[7]", from: "List/1.items"), .invalidValue),
      (.remove(#"["Item"]"#, from: "List/1.items"), .invalidValue),
      (.insert("[]", into: "List/1.next"), .notACollection),
      (.remove([0], from: "List/1.count"), .notACollection), (.remove([0], from: "List/1.nope"), .undefinedKey),
      (.insert("[]", into: "List/1.items.@count"), .malformedKeyPath),
      (.set("List/1.items.name", to: "null"), .notACollection),
      (.set("List/1.items.peer.name", to: "null"), .notACollection),
      (.insert("[]", into: "List/9.items"), .unknownObject), (.set("List/1.count", to: "1"), .readOnlyKey),
    ]
    for (operation, code) in cases {
      let error = try fixture.error([operation])
      #expect(error.code == code, "\(error)")
    }
  }
}
