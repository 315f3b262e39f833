import KeyValueModel
import Testing

@Suite("A failed transaction")
struct FailureTests {
  static let schema = """
    entities:
      Item:
        keys:
          name: {type: string, optional: false}
          size: {type: integer, maximum: 9}
          other: {toOne: Item}
          twin: {toOne: Item, inverse: twin}
          part: {toOne: Item, delete: cascade}
          lock: {toOne: Item, delete: deny}
          otherName: {computed: other.name}
          list: {toMany: Item, ordered: true, inverse: holder}
          holder: {toOne: Item, inverse: list}
          peers: {toMany: Item, inverse: peers}
          seen: {toMany: Item, ordered: true}
          tags: {toMany: string, maxLength: 3}
          rank: {type: integer, indexed: true}
      Box: {keys: {item: {toOne: Item}}}
    """

  static func fixture() throws -> Fixture {
    var fixture = try Fixture(schema)
    try fixture.create("Item/1", #"{"name":"one"}"#)
    try fixture.create("Item/2", #"{"name":"two","other":"Item/1","twin":"Item/1","size":3}"#)
    try fixture.create("Item/3", #"{"name":"three","lock":"Item/1","part":"Item/2"}"#)
    try fixture.create("Box/1", #"{"item":"Item/2"}"#)
    try fixture.commit(
      .insert(#"["Item/2","Item/3"]"#, into: "Item/1.list"), .insert(#"["Item/2","Item/1"]"#, into: "Item/1.peers"),
      .insert(#"["Item/3","Item/1","Item/2"]"#, into: "Item/2.seen"), .insert(#"["a","b"]"#, into: "Item/1.tags"),
      .set("Item/1.rank", to: "1"))
    return fixture
  }

  /// A failing operation for each code that a transaction can fail with.
  static func failures() throws -> [ModelError.Code: Operation] {
    let one = try ref("Item/1")
    return try [
      .unknownEntity: .create(ref("Thing/1"), [:]), .unknownObject: .set(ref("Item/9"), keyPath: "name", .null),
      .undefinedKey: .set(one, keyPath: "nope", .null), .malformedKeyPath: .set(one, keyPath: "a..b", .null),
      .nullInKeyPath: .set(one, keyPath: "other.name", .string("x")), .deleteDenied: .delete(ref("Item/3")),
      .alreadyExists: .create(one, ["name": .string("x")]), .staleRevision: .require(one, 0),
      .invalidValue: .put(one, ["name": .string("x"), "size": .integer(10)]), .nullNotAllowed: .put(one, [:]),
      .readOnlyKey: .set(one, keyPath: "otherName", .string("x")),
      .wrongEntity: .set(one, keyPath: "twin", .string("Box/1")),
      .unbalancedBracket: .didChange(one, key: "name"),
      .indexOutOfRange: .insert(#"["x"]"#, into: "Item/1.tags", at: [0]),
      .patchTestFailed: .jsonPatch("Item/1", #"[{"op":"test","path":"/name","value":"x"}]"#),
      .notACollection: .insert("[]", into: "Item/1.name"),
    ]
  }

  /// Returns operations that all succeed and change everything.
  static func successes() throws -> [Operation] {
    let (one, two, box, new) = (try ref("Item/1"), try ref("Item/2"), try ref("Box/1"), try ref("Item/7"))
    return try [
      .set(one, keyPath: "name", .string("uno")), .create(new, ["name": .string("n"), "twin": .string("Item/2")]),
      .set(box, keyPath: "item", .string("Item/7")), .patch(two, ["size": .null, "other": .string("Item/7")]),
      .put(two, ["name": .string("dos")]), .willChange(box, key: "item"), .delete(new),
      .create(new, ["name": .string("m")]),
      .didChange(box, key: "item"), .set(new, keyPath: "twin", .string("Item/1")), .delete(box),
      .set(ref("Item/3"), keyPath: "lock", .null), .set(one, keyPath: "part", .string("Item/3")),
      .replace([0], of: "Item/1.list", with: #"[{"@ref":"Item/8","name":"8","seen":["Item/8","Item/1"]}]"#),
      .mutate("Item/1.peers", .set, #"["Item/3","Item/8"]"#),
      .insert(#"["Item/8","Item/2","Item/3"]"#, into: "Item/2.seen"),
      .remove([0, 2], from: "Item/2.seen"),
      .insert(#"["Item/8","Item/7"]"#, into: "Item/2.seen", at: [1, 0]), .delete(ref("Item/8")),
      .create(ref("Item/8"), ["name": .string("again"), "rank": .integer(1)]),
      .jsonPatch(
        "Item/8", #"[{"op":"add","path":"/list","value":["Item/3"]},{"op":"replace","path":"/rank","value":2}]"#),
      .mutate("Item/1.tags", .intersect, #"["b","c"]"#), .set("Item/1.rank", to: "null"),
      .insert(#"["Item/1"]"#, into: "Item/8.seen"),
    ]
  }

  @Test(
    "Every code has a way to it, but those of rules and limits, and of observing, filtering and reading"
  )
  func codes() throws {
    let covered = Set(try Self.failures().keys)
      .union([.unobservableKeyPath, .malformedFilter, .malformedQuery, .contentTooLarge, .tooManySteps])
    let others: Set<ModelError.Code> = [.forbidden, .overloaded, .tooManyLeases, .tooManyLeasesOfClient]
    #expect(covered.union(others) == Set(ModelError.Code.allCases))
    let fixture = try Self.fixture()
    let error = try #require(throws: ModelError.self) { try fixture.value("Item/1", "other.@count") }
    #expect(error.code == .notACollection)
  }

  @Test("Alone it says why, and leaves no trace")
  func alone() throws {
    for (code, operation) in try Self.failures() {
      var fixture = try Self.fixture()
      let error = try fixture.error([operation])
      #expect((error.code, error.operation) == (code, nil), "\(error)")
      #expect(error.description.hasPrefix(code.rawValue))
    }
  }

  @Test("At the last of many operations it leaves no trace either, and names the operation")
  func atTheEnd() throws {
    let successes = try Self.successes()
    var reference = try Self.fixture()
    _ = try reference.model.commit(Transaction(successes))
    #expect(inconsistencies(in: reference.model.state).isEmpty)
    // Each failure, after the operations after which it still fails.
    for (code, operation) in try Self.failures() where ![.nullInKeyPath, .deleteDenied].contains(code) {
      for count in 1...successes.count {
        var fixture = try Self.fixture()
        let error = try fixture.error(Array(successes.prefix(count)) + [operation])
        #expect((error.code, error.operation) == (code, count), "\(error)")
        #expect(inconsistencies(in: fixture.model.state).isEmpty)
        // The failure does not affect later transactions.
        _ = try fixture.model.commit(Transaction(successes))
        #expect(fixture.portrait == reference.portrait)
      }
    }
  }

  @Test("A cascade that is denied halfway leaves no trace")
  func deniedCascade() throws {
    var fixture = try Self.fixture()
    let error = try fixture.error([
      .set(try ref("Item/1"), keyPath: "size", .integer(1)), .set(try ref("Box/1"), keyPath: "item", .null),
      .delete(try ref("Item/3")),
    ])
    #expect((error.code, error.operation, error.object) == (.deleteDenied, 2, "Item/3"))
  }

  @Test("An error in a body names object and key")
  func places() throws {
    var fixture = try Self.fixture()
    let one = try ref("Item/1")
    let undefined = try fixture.error([.patch(one, ["nope": .null])])
    #expect((undefined.object, undefined.keyPath) == ("Item/1", "nope"))
    let wrongRef = try fixture.error([.patch(one, ["@ref": .string("Item/2")])])
    #expect((wrongRef.code, wrongRef.keyPath) == (.invalidValue, "@ref"))
    let computed = try fixture.error([.put(one, ["name": .string("x"), "otherName": .null])])
    #expect((computed.code, computed.keyPath) == (.readOnlyKey, "otherName"))
    let operators = try fixture.error([.set(one, keyPath: "other.@count", .null)])
    #expect((operators.code, operators.object) == (.malformedKeyPath, "Item/1"))
  }
}
