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
      Box: {keys: {item: {toOne: Item}}}
    """

  static func bench() throws -> Bench {
    var bench = try Bench(schema)
    try bench.create("Item/1", #"{"name":"one"}"#)
    try bench.create("Item/2", #"{"name":"two","other":"Item/1","twin":"Item/1","size":3}"#)
    try bench.create("Item/3", #"{"name":"three","lock":"Item/1","part":"Item/2"}"#)
    try bench.create("Box/1", #"{"item":"Item/2"}"#)
    return bench
  }

  /// A failing operation for each code that a transaction can fail with.
  static func failures() throws -> [ModelError.Code: Operation] {
    let one = try ref("Item/1")
    return [
      .unknownEntity: .create(try ref("Thing/1"), [:]), .unknownObject: .set(try ref("Item/9"), keyPath: "name", .null),
      .undefinedKey: .patch(one, ["nope": .null]), .malformedKeyPath: .set(one, keyPath: "a..b", .null),
      .nullInKeyPath: .set(one, keyPath: "other.name", .string("x")), .deleteDenied: .delete(try ref("Item/3")),
      .alreadyExists: .create(one, ["name": .string("x")]), .staleRevision: .require(one, 0),
      .invalidValue: .put(one, ["name": .string("x"), "size": .integer(10)]), .nullNotAllowed: .put(one, [:]),
      .readOnlyKey: .set(one, keyPath: "otherName", .string("x")),
      .wrongEntity: .set(one, keyPath: "twin", .string("Box/1")),
      .unbalancedBracket: .didChange(one, key: "name"),
    ]
  }

  /// Operations that all succeed and leave nothing as it was.
  static func successes() throws -> [Operation] {
    let (one, two, box, new) = (try ref("Item/1"), try ref("Item/2"), try ref("Box/1"), try ref("Item/7"))
    return [
      .set(one, keyPath: "name", .string("uno")), .create(new, ["name": .string("n"), "twin": .string("Item/2")]),
      .set(box, keyPath: "item", .string("Item/7")), .patch(two, ["size": .null, "other": .string("Item/7")]),
      .put(two, ["name": .string("dos")]), .willChange(box, key: "item"), .delete(new),
      .create(new, ["name": .string("m")]),
      .didChange(box, key: "item"), .set(new, keyPath: "twin", .string("Item/1")), .delete(box),
      .set(try ref("Item/3"), keyPath: "lock", .null), .set(one, keyPath: "part", .string("Item/3")),
    ]
  }

  @Test("Every code has a way to it, but the one that only reading gives")
  func codes() throws {
    let covered = Set(try Self.failures().keys).union([.notACollection])
    #expect(covered == Set(ModelError.Code.allCases))
    let bench = try Self.bench()
    let error = try #require(throws: ModelError.self) { try bench.value("Item/1", "other.@count") }
    #expect(error.code == .notACollection)
  }

  @Test("Alone it says why, and leaves no trace")
  func alone() throws {
    for (code, operation) in try Self.failures() {
      var bench = try Self.bench()
      let error = try bench.error([operation])
      #expect((error.code, error.operation) == (code, nil), "\(error)")
      #expect(error.description.hasPrefix(code.rawValue))
    }
  }

  @Test("At the last of many operations it leaves no trace either, and names the operation")
  func atTheEnd() throws {
    let successes = try Self.successes()
    var reference = try Self.bench()
    _ = try reference.model.commit(Transaction(successes))
    #expect(brokenReferrers(in: reference.model.state).isEmpty)
    // Each of the failures behind the operations after which it still is one.
    for (code, operation) in try Self.failures() where ![.nullInKeyPath, .deleteDenied].contains(code) {
      for count in 1...successes.count {
        var bench = try Self.bench()
        let error = try bench.error(Array(successes.prefix(count)) + [operation])
        #expect((error.code, error.operation) == (code, count), "\(error)")
        #expect(brokenReferrers(in: bench.model.state).isEmpty)
        // What failed stands in nobody's way.
        _ = try bench.model.commit(Transaction(successes))
        #expect(bench.portrait == reference.portrait)
      }
    }
  }

  @Test("A cascade that is denied halfway leaves no trace")
  func deniedCascade() throws {
    var bench = try Self.bench()
    let error = try bench.error([
      .set(try ref("Item/1"), keyPath: "size", .integer(1)), .set(try ref("Box/1"), keyPath: "item", .null),
      .delete(try ref("Item/3")),
    ])
    #expect((error.code, error.operation, error.object) == (.deleteDenied, 2, "Item/3"))
  }

  @Test("An error in a body names object and key")
  func places() throws {
    var bench = try Self.bench()
    let one = try ref("Item/1")
    let undefined = try bench.error([.patch(one, ["nope": .null])])
    #expect((undefined.object, undefined.keyPath) == ("Item/1", "nope"))
    let wrongRef = try bench.error([.patch(one, ["@ref": .string("Item/2")])])
    #expect((wrongRef.code, wrongRef.keyPath) == (.invalidValue, "@ref"))
    let computed = try bench.error([.put(one, ["name": .string("x"), "otherName": .null])])
    #expect((computed.code, computed.keyPath) == (.readOnlyKey, "otherName"))
    let operators = try bench.error([.set(one, keyPath: "other.@count", .null)])
    #expect((operators.code, operators.object) == (.malformedKeyPath, "Item/1"))
  }
}
