import Testing

@testable import KeyValueModel

@Suite("Preparation of a transaction before the writer")
struct PreparationTests {
  var fixture: Fixture

  init() throws {
    fixture = try Fixture(
      """
      entities:
        Item:
          keys:
            name: {type: string, pattern: "^a+$"}
            notes: {type: json}
            size: {type: integer, maximum: 9}
            other: {toOne: Item}
            otherName: {computed: other.name}
            tags: {toMany: string, maxLength: 3}
      """)
    try fixture.create("Item/1", #"{"name":"aaa","notes":[1,2,3]}"#)
    try fixture.create("Item/2", #"{"other":"Item/1"}"#)
  }

  private func prepared(_ operations: [Operation]) -> Transaction {
    var transaction = Transaction(operations)
    transaction.prepare(in: fixture.model.state, limits: TransactionLimits())
    return transaction
  }

  /// Limits that suffice to write one small object, but not to inspect its JSON.
  private var fewSteps: TransactionLimits {
    var limits = TransactionLimits()
    limits.steps = 12
    return limits
  }

  private static let patch = #"[{"op":"test","path":"/notes/1","value":2},{"op":"add","path":"/notes/-","value":4}]"#

  @Test("A patch of an object that is unchanged is not applied again by the writer")
  mutating func patchOnce() throws {
    let operation = try Operation.jsonPatch("Item/1", Self.patch)
    let before = fixture.model
    #expect(throws: ModelError.self) { _ = try fixture.model.commit(Transaction([operation]), limits: fewSteps) }
    #expect(fixture.model.revision == before.revision)
    _ = try fixture.model.commit(prepared([operation]), limits: fewSteps)
    #expect(try fixture.value("Item/1", "notes") == "[1,2,3,4]")
    #expect(inconsistencies(in: fixture.model.state).isEmpty)
  }

  @Test("A patch of an object that was written meanwhile is applied to what it is now")
  mutating func patchAgain() throws {
    let transaction = prepared([try .jsonPatch("Item/1", Self.patch)])
    try fixture.set("Item/1", "notes", "[0,2]")
    _ = try fixture.model.commit(transaction, limits: TransactionLimits())
    #expect(try fixture.value("Item/1", "notes") == "[0,2,4]")
    try fixture.set("Item/1", "notes", "[0]")
    #expect(try fixture.error(transaction.operations).code == .invalidValue)
  }

  @Test("A patch of an object that was deleted and made again is applied to the new one")
  mutating func patchOfAnother() throws {
    let transaction = prepared([try .jsonPatch("Item/1", Self.patch)])
    try fixture.delete("Item/1")
    #expect(throws: ModelError.self) { _ = try fixture.model.commit(transaction) }
    try fixture.create("Item/1", #"{"notes":[9,2]}"#)
    _ = try fixture.model.commit(transaction)
    #expect(try fixture.value("Item/1", "notes") == "[9,2,4]")
  }

  @Test("A patch that reads other objects is for the writer")
  mutating func patchOfComputedKey() throws {
    let transaction = prepared([
      try .jsonPatch("Item/2", #"[{"op":"copy","from":"/otherName","path":"/notes"}]"#)
    ])
    try fixture.set("Item/1", "name", #""aaaa""#)
    _ = try fixture.model.commit(transaction)
    #expect(try fixture.value("Item/2", "notes") == #""aaaa""#)
  }

  @Test(
    "A value that is refused is refused alike, prepared or not, and what the objects refuse before comes first",
    arguments: [
      .create("Item/3", #"{"name":"b"}"#), .create("Item/1", #"{"name":"b"}"#), .put("Item/1", #"{"size":10}"#),
      .patch("Item/1", #"{"name":"b","size":1}"#), .patch("Item/9", #"{"name":"b"}"#), .set("Item/1", "name", #""b""#),
      .set("Item/2", "other.name", #""b""#), .set("Item/1", "other.name", #""b""#),
      .set("Item/1", "tags", #"["abcd"]"#),
      .insert("Item/1", "tags", #"["abc","abcd"]"#), .insert("Item/9", "tags", #"["abcd"]"#),
      .jsonPatch("Item/1", #"[{"op":"replace","path":"/name","value":"b"}]"#),
      .jsonPatch("Item/1", #"[{"op":"test","path":"/name","value":"b"}]"#),
      .jsonPatch("Item/9", #"[{"op":"test","path":"/name","value":"b"}]"#),
      .set("Item/1", "size", "1.5"), .set("Item/1", "otherName", "1"), .set("Item/1", "nope", "1"),
    ] as [Attempt])
  mutating func refusals(attempt: Attempt) throws {
    let operation = try attempt.operation()
    let expected = try fixture.error([operation])
    let error = #expect(throws: ModelError.self) { _ = try fixture.model.commit(prepared([operation])) }
    #expect(error == expected)
  }

  @Test("Values that are taken are taken alike, prepared or not")
  mutating func values() throws {
    var other = fixture
    let attempts: [Attempt] = [
      .create("Item/3", #"{"name":"a","notes":{"x":1.00000000000000000001},"size":2.0,"tags":["x","y"]}"#),
      .patch("Item/3", #"{"notes":{"y":[1]},"name":null}"#), .put("Item/1", #"{"notes":[1,2.5],"size":3}"#),
      .set("Item/2", "other.notes", #"{"z":1}"#), .insert("Item/3", "tags", #"["z"]"#),
      .set("Item/3", "tags", #"["q","q"]"#),
      .jsonPatch("Item/1", #"[{"op":"add","path":"/notes/a","value":1.00000000000000000001}]"#),
    ]
    for attempt in attempts {
      let operation = try attempt.operation()
      _ = try fixture.model.commit(prepared([operation]))
      try other.commit(operation)
    }
    #expect(fixture.portrait == other.portrait)
    #expect(inconsistencies(in: fixture.model.state).isEmpty)
  }

  enum Attempt: Sendable, CustomTestStringConvertible {
    case create(String, String), put(String, String), patch(String, String), set(String, String, String)
    case insert(String, String, String), jsonPatch(String, String)

    var testDescription: String { "\(self)" }

    func operation() throws -> Operation {
      switch self {
      case .create(let object, let text): .create(try ref(object), try body(text))
      case .put(let object, let text): .put(try ref(object), try body(text))
      case .patch(let object, let text): .patch(try ref(object), try body(text))
      case .set(let object, let path, let text): .set(try ref(object), keyPath: path, try json(text))
      case .insert(let object, let path, let text): try .insert(text, into: "\(object).\(path)")
      case .jsonPatch(let object, let text): try .jsonPatch(object, text)
      }
    }
  }
}
