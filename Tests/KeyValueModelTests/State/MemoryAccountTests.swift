import TestKit
import Testing

@testable import KeyValueModel

/// The memory of the objects, which every state counts as they change. Tests of transactions call `inconsistencies`,
/// which checks that the count is the sum over all records.
@Suite("The memory of objects")
struct MemoryAccountTests {
  private static let schema = """
    entities:
      Item:
        keys:
          text: {type: string, indexed: true}
          data: {type: json}
          next: {toOne: Item}
          others: {toMany: Item, ordered: true}
          names: {toMany: string}
    """

  @Test(
    "Values count what they occupy, which is many times their text where that is short",
    arguments: [("[]", 24), ("{}", 72), ("1", 24), (#""a text of more than fifteen bytes""#, 104), (#"{"a":{}}"#, 248)])
  func values(element: String, bytes: Int) throws {
    let value = try json("[\(Array(repeating: element, count: 4_096).joined(separator: ","))]")
    #expect(value.size.memoryBytes / 4_096 == bytes)
  }

  @Test("The count is the sum over all objects whatever is written, carried out again, undone or read back")
  func random() throws {
    var random = SplitMix64(seed: seed)
    var model = Model(schema: try Schema(yaml: Self.schema))
    var redone = model
    let items = try (0..<12).map { try ref("Item/\($0)-\(String(repeating: "x", count: $0 * 3))") }
    _ = try model.commit(Transaction(items.map { .put($0, [:]) }))
    _ = try redone.commit(Transaction(items.map { .put($0, [:]) }))
    var refusals = 0
    for step in 0..<600 {
      var operations = try (0..<Int.random(in: 1...3, using: &random)).map { _ in
        try Self.operation(on: items.randomElement(using: &random) ?? items[0], items, &random)
      }
      if random.chance(10) { operations.append(.delete(try ref("Item/none"))) }
      let transaction = Transaction(operations)
      if (try? model.commit(transaction, at: 1_000)) == nil {
        refusals += 1
      } else {
        try redone.redo(transaction, at: 1_000)
      }
      guard step % 20 == 19 else { continue }
      #expect(inconsistencies(in: model.state) == [], "step \(step) of seed \(seed)")
      #expect(inconsistencies(in: redone.state) == [], "step \(step) of seed \(seed)")
      #expect(redone.state.memoryBytes == model.state.memoryBytes, "step \(step) of seed \(seed)")
      var (encoder, decoder) = (StateEncoder(model.state, blockBytes: 500), StateDecoder(schema: model.schema))
      while let block = encoder.nextBlock() {
        decoder.insert(try StateDecoder.block(of: block, schema: model.schema))
      }
      #expect(inconsistencies(in: try decoder.finish()) == [], "step \(step) of seed \(seed)")
    }
    #expect(refusals > 20, "seed \(seed)")
  }

  private static func operation(
    on item: Reference, _ items: [Reference], _ random: inout SplitMix64
  ) throws -> KeyValueModel.Operation {
    let text = String(repeating: "t", count: [0, 9, 15, 16, 40, 64, 65, 300].randomElement(using: &random) ?? 0)
    let length = Int.random(in: 0..<30, using: &random)
    switch Int.random(in: 0..<9, using: &random) {
    case 0: return .put(item, ["text": .string(text), "next": .string(items[0].text)])
    case 1: return .set(item, keyPath: "text", .string(text))
    case 2: return .set(item, keyPath: "data", .array(Array(repeating: .array([.string(text)]), count: length)))
    case 3: return try .jsonPatch(item.text, #"[{"op":"add","path":"/data","value":{"\#(text)":[{},[],1]}}]"#)
    case 4: return .set(item, keyPath: "others", .array(items.shuffled(using: &random).prefix(length).map(\.member)))
    case 5: return .set(item, keyPath: "names", .array((0..<length).map { .string("name \($0) \(text)") }))
    case 6: return .delete(item)
    case 7: return .lifetime(item, random.chance(50) ? .seconds(60) : .unlimited)
    default: return try .insert(#"["\#(items[length % 12].text)"]"#, into: item.text + ".others")
    }
  }

  @Test("A transaction that adds is refused over the limit and changes nothing; one that does not add is taken")
  func limit() throws {
    var fixture = try Fixture(Self.schema)
    let long = String(repeating: "x", count: 10_000)
    for number in 0..<4 { try fixture.put("Item/\(number)", #"{"text":"\#(long)"}"#) }
    var limits = TransactionLimits()
    limits.memoryBytes = fixture.model.state.memoryBytes - 20_000
    let (one, new) = (try ref("Item/1"), try ref("Item/new"))
    let refused: [[KeyValueModel.Operation]] = [
      [.put(new, [:])], [.set(one, keyPath: "text", .string(long + long))],
      [.set(one, keyPath: "data", .array([.null]))],
      [.delete(one), .put(new, ["text": .string(long), "data": .array([.string(long)])])],
    ]
    for operations in refused {
      let before = fixture.portrait
      let error = try #require(throws: ModelError.self) {
        _ = try fixture.model.commit(Transaction(operations), limits: limits)
      }
      #expect(error.code == .overloaded)
      #expect(fixture.portrait == before)
      #expect(inconsistencies(in: fixture.model.state) == [])
    }
    let taken: [[KeyValueModel.Operation]] = [
      [.set(one, keyPath: "text", .string(String(repeating: "y", count: 10_000)))],
      [.delete(one), .put(new, [:])], [.set(new, keyPath: "text", .null)], [.delete(try ref("Item/2"))],
    ]
    for operations in taken { _ = try fixture.model.commit(Transaction(operations), limits: limits) }
    #expect(fixture.model.state.memoryBytes < limits.memoryBytes)
    _ = try fixture.model.commit(Transaction([.put(one, [:])]), limits: limits)
  }
}

extension Reference {
  fileprivate var member: Value { .string(text) }
}
