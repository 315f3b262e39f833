import TestKit
import Testing

@testable import KeyValueModel

@Suite struct ObjectRecordTests {
  /// Schemas of objects that do not store the last revision of some keys apart, and of objects that do.
  private static let schemas = [
    "entities: {Item: {keys: {a: {type: json}, b: {type: json}, c: {type: json}, d: {type: json}}}}",
    """
    entities:
      Item:
        keys:
          a: {type: json}
          b: {type: json}
          c: {type: json}
          next: {toOne: Item}
          other: {computed: next.c}
    """,
  ]

  @Test("after any settings it has what an array has, and so have its copies", arguments: schemas.indices)
  func random(schema: Int) throws {
    let entity = try Schema(yaml: Self.schemas[schema]).entities[0]
    #expect(entity.farKeeping == (schema == 0 ? .creation : .apart))
    var random = SplitMix64(seed: seed)
    var oracle = (0..<4).map { _ in Self.value(&random) }
    var farRevision: Revision = 1
    var record = ObjectRecord(try ref("Item/1"), entity: entity, revision: 1, createdAt: 1, values: oracle)
    var copies: [(record: ObjectRecord, oracle: [Value], farRevision: Revision)] = []
    for step in 2...3000 {
      let (index, value, isFar) = (Int.random(in: 0..<4, using: &random), Self.value(&random), random.chance(50))
      if random.chance(30) { copies.append((record, oracle, farRevision)) }
      if copies.count > 20 { copies.remove(at: Int.random(in: copies.indices, using: &random)) }
      oracle[index] = value
      record.set(value, at: index)
      record.noteSetting(by: Revision(step), isReadFromAfar: isFar)
      if isFar { farRevision = Revision(step) }
      try Self.expect(record, oracle, schema == 0 ? 1 : farRevision)
    }
    for copy in copies { try Self.expect(copy.record, copy.oracle, schema == 0 ? 1 : copy.farRevision) }
  }

  private static func expect(_ record: ObjectRecord, _ oracle: [Value], _ farRevision: Revision) throws {
    #expect(Array(record.values) == oracle, "seed \(seed)")
    #expect(record.farRevision == farRevision, "seed \(seed)")
    #expect(record.textBytes == oracle.reduce(0) { $0 + $1.textBytes }, "seed \(seed)")
    for (index, value) in oracle.enumerated() {
      #expect(record.values.approximateBytes(at: index) == value.approximateBytes, "seed \(seed)")
      for limit in [Int.max, 20] {
        var (bytes, expected): ([UInt8], [UInt8]) = ([], [])
        record.values.appendJSON(at: index, to: &bytes, upTo: limit)
        value.appendJSON(to: &expected, upTo: limit)
        #expect(bytes == expected, "seed \(seed)")
      }
    }
  }

  /// Returns texts whose lengths are near the limits between which they are stored in the object's own memory, and
  /// other values.
  private static func value(_ random: inout SplitMix64) -> Value {
    let lengths = [0, 1, 14, 15, 16, 17, 40, 63, 64, 65, 66, 200]
    switch Int.random(in: 0..<10, using: &random) {
    case 0: return .null
    case 1: return .integer(.random(in: .min ... .max, using: &random))
    case 2: return .number(-0.0)
    case 3: return .bool(random.chance(50))
    case 4: return .array([.string(String(repeating: "in a list ", count: 3))])
    case 5: return .object(["name": .string(String(repeating: "in an object ", count: 3))])
    case 6: return .string(String(repeating: "\u{1F600}ü\"\\\n", count: Int.random(in: 0..<9, using: &random)))
    default:
      let length = lengths[Int.random(in: lengths.indices, using: &random)]
      return .string(String(repeating: Character(["a", "b"][Int.random(in: 0...1, using: &random)]), count: length))
    }
  }
}
