import Testing

@testable import KeyValueModel

@Suite("Limits of a transaction")
struct TransactionLimitTests {
  static let schema = """
    entities:
      Item:
        keys:
          text: {type: string}
          notes: {type: json}
          parts: {toMany: Item, inverse: whole, delete: cascade}
          whole: {toOne: Item, inverse: parts}
          tags: {toMany: string}
    """

  var fixture: Fixture
  let one: Reference

  init() throws {
    fixture = try Fixture(Self.schema)
    one = try ref("Item/1")
    try fixture.create("Item/1")
  }

  private static func limits(_ change: (inout TransactionLimits) -> Void) -> TransactionLimits {
    var limits = TransactionLimits()
    change(&limits)
    return limits
  }

  /// Returns the error of operations under limits. Fails if there is none, or if they left a trace.
  private mutating func refusal(_ operations: [Operation], _ limits: TransactionLimits) throws -> ModelError {
    let before = fixture.portrait
    let error = try #require(throws: ModelError.self) {
      _ = try fixture.model.commit(Transaction(operations), limits: limits)
    }
    #expect(fixture.portrait == before)
    #expect(inconsistencies(in: fixture.model.state).isEmpty)
    return error
  }

  private static func patch(_ operations: [String]) throws -> Operation {
    try .jsonPatch("Item/1", "[\(operations.joined(separator: ","))]")
  }

  @Test("A patch that copies a text again and again is refused at the copy that is too much, and nothing is changed")
  mutating func copies() throws {
    let text = String(repeating: "a", count: 900)
    try fixture.put("Item/1", #"{"text":"\#(text)","notes":[]}"#)
    let limits = Self.limits { $0.objectBytes = 100_000 }
    let copies = Array(repeating: #"{"op":"copy","from":"/text","path":"/notes/-"}"#, count: 600)
    let error = try refusal([try Self.patch(copies)], limits)
    #expect((error.code, error.object) == (.contentTooLarge, "Item/1"))
    #expect(error.detail.hasPrefix("operation 109 of the patch: "), "\(error.detail)")
    _ = try fixture.model.commit(Transaction([try Self.patch(Array(copies.prefix(100)))]), limits: limits)
    #expect(try #require(fixture.model.state.record(one)).textBytes < 100_000)
  }

  @Test("Values that a patch copies and removes again count for the transaction")
  mutating func temporaryCopies() throws {
    try fixture.put("Item/1", #"{"text":"\#(String(repeating: "a", count: 900))","notes":{}}"#)
    let pair = [#"{"op":"copy","from":"/text","path":"/notes/a"}"#, #"{"op":"remove","path":"/notes/a"}"#]
    let patch = try Self.patch(Array(repeating: pair, count: 200).flatMap(\.self))
    #expect(try refusal([patch], Self.limits { $0.bytes = 100_000 }).code == .contentTooLarge)
    _ = try fixture.model.commit(Transaction([patch]), limits: TransactionLimits())
  }

  @Test("An object that is too large already may shrink and not grow, whatever writes it")
  mutating func largeObject() throws {
    let long = String(repeating: "b", count: 500)
    try fixture.put("Item/1", #"{"text":"\#(long)","notes":["\#(long)"]}"#)
    let limits = Self.limits { $0.objectBytes = 300 }
    for operation in try [
      .set(one, keyPath: "text", json("\"\(long)c\"")), .patch(one, body(#"{"notes":["\#(long)",1]}"#)),
      .insert(#"["x"]"#, into: "Item/1.tags"), Self.patch([#"{"op":"add","path":"/notes/-","value":1}"#]),
    ] as [Operation] {
      let error = try refusal([operation], limits)
      #expect((error.code, error.object) == (.contentTooLarge, "Item/1"))
    }
    for operation in try [
      Self.patch([#"{"op":"remove","path":"/notes/0"}"#]), .set(one, keyPath: "text", .null),
    ] as [Operation] {
      _ = try fixture.model.commit(Transaction([operation]), limits: limits)
    }
    #expect(try fixture.value("Item/1", "notes") == "[]")
  }

  @Test("A transaction writes so many bytes, and the operation is named that is too much")
  mutating func transactionBytes() throws {
    let operations = (1...10).map {
      Operation.set(one, keyPath: "text", .string(String(repeating: "\($0)", count: 100)))
    }
    let error = try refusal(operations, Self.limits { $0.bytes = 500 })
    #expect((error.code, error.operation) == (.contentTooLarge, 4))
  }

  @Test("A patch costs what it changes: the end of a long array is cheap, its beginning is not")
  mutating func steps() throws {
    try fixture.commit(.set(one, keyPath: "notes", .array(Array(repeating: .integer(1), count: 50_000))))
    let record = try #require(fixture.model.state.record(one))
    func cost(_ path: String, _ count: Int) throws -> Int {
      let patch = try JSONPatch(
        try json(
          "[\(Array(repeating: #"{"op":"add","path":"\#(path)","value":1}"#, count: count).joined(separator: ","))]"))
      let budget = TransactionBudget(.unlimited)
      return try ObjectPatch(patch, of: one, record, in: fixture.model.state, budget: budget).steps
    }
    // Each operation counts a step for each part of its path, one for itself, and one for its value.
    let (first, hundred) = (try cost("/notes/-", 1), try cost("/notes/-", 100))
    #expect(hundred - first == 99 * 4)
    #expect(try cost("/notes/0", 100) > 100 * 50_000 / 16)
    let front = Array(repeating: #"{"op":"add","path":"/notes/0","value":1}"#, count: 100)
    let limits = Self.limits { $0.steps = 50_000 }
    let error = try refusal([try Self.patch(front)], limits)
    #expect((error.code, error.object) == (.tooManySteps, "Item/1"))
    let end = Array(repeating: #"{"op":"add","path":"/notes/-","value":1}"#, count: 100)
    _ = try fixture.model.commit(Transaction([try Self.patch(end)]), limits: limits)
  }

  @Test("A cascade is counted before anything is deleted")
  mutating func cascade() throws {
    for id in 2...50 { try fixture.create("Item/\(id)", #"{"whole":"Item/1"}"#) }
    #expect(try refusal([.delete(one)], Self.limits { $0.steps = 300 }).code == .tooManySteps)
    _ = try fixture.model.commit(Transaction([.delete(one)]), limits: TransactionLimits())
    #expect(fixture.model.state.count == 0)
  }

  @Test("Merging into an object of many members counts them, each time")
  mutating func merges() throws {
    let members = (0..<5_000).map { "\"k\($0)\":1" }.joined(separator: ",")
    try fixture.put("Item/1", #"{"notes":{\#(members)}}"#)
    let operations = try (0..<50).map { Operation.patch(one, try body(#"{"notes":{"k\#($0)":2}}"#)) }
    let error = try refusal(operations, Self.limits { $0.steps = 50_000 })
    #expect(error.code == .tooManySteps)
    #expect(try #require(error.operation) < 20)
  }

  @Test("A committed transaction is redone without limits")
  mutating func replay() throws {
    let operation = Operation.set(one, keyPath: "text", .string(String(repeating: "a", count: 1_000)))
    #expect(try refusal([operation], Self.limits { $0.bytes = 10 }).code == .contentTooLarge)
    _ = try fixture.model.commit(Transaction([operation]))
  }
}
