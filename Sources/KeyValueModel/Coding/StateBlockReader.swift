/// Reads one block of a state.
struct StateBlockReader {
  private var parser: JSONParser
  private let schema: Schema
  private var objects: [StateDecoder.Restored] = []

  init(_ bytes: UnsafeBufferPointer<UInt8>, schema: Schema) {
    parser = JSONParser(bytes, depthLimit: JSONParser.storedDepthLimit, isExact: true)
    self.schema = schema
  }

  /// The objects of the block.
  mutating func read() throws(JSONError) -> [StateDecoder.Restored] {
    try parser.expect(UInt8(ascii: "["))
    repeat { try readEntity() } while parser.takes(UInt8(ascii: ","))
    try parser.expect(UInt8(ascii: "]"))
    try parser.expectEnd()
    return objects
  }

  private mutating func readEntity() throws(JSONError) {
    try parser.expect(UInt8(ascii: "["))
    let start = parser.position
    let name = try parser.parseQuoted()
    guard let entity = schema.entity(named: name) else {
      throw JSONError(reason: "the schema has no entity '\(name)'", offset: start)
    }
    try parser.expect(UInt8(ascii: ","))
    let keys = try readKeys(of: entity)
    try parser.expect(UInt8(ascii: ","))
    try parser.expect(UInt8(ascii: "["))
    if !parser.takes(UInt8(ascii: "]")) {
      repeat { try readObject(entity, keys) } while parser.takes(UInt8(ascii: ","))
      try parser.expect(UInt8(ascii: "]"))
    }
    try parser.expect(UInt8(ascii: "]"))
  }

  /// The stored keys, which must be those of the schema in its order.
  private mutating func readKeys(of entity: Entity) throws(JSONError) -> [(name: String, column: StoredColumn)] {
    let start = parser.position
    let names = try parser.parseList { parser throws(JSONError) in try parser.parseQuoted() }
    let keys = entity.storedKeys.map { (name: $0.name, column: StoredColumn($0)) }
    guard names.elementsEqual(keys.map(\.name)) else {
      let wanted = keys.map(\.name).joined(separator: ", ")
      throw JSONError(
        reason: "\(entity.name) has the keys \(wanted) and not \(names.joined(separator: ", "))", offset: start)
    }
    return keys
  }

  private mutating func readObject(
    _ entity: Entity, _ keys: [(name: String, column: StoredColumn)]
  ) throws(JSONError) {
    try parser.expect(UInt8(ascii: "["))
    let start = parser.position
    let id = try parser.parseQuoted()
    guard let reference = Reference(entity: entity.name, id: id) else {
      throw JSONError(reason: "'\(id)' is no id", offset: start)
    }
    try parser.expect(UInt8(ascii: ","))
    let revision = try parser.parseUnsigned()
    try parser.expect(UInt8(ascii: ","))
    let createdAt = try parser.parseUnsigned()
    guard createdAt <= revision else { throw parser.error("\(reference) was changed before it was made") }
    var values: [Value] = []
    values.reserveCapacity(keys.count)
    for (name, column) in keys {
      try parser.expect(UInt8(ascii: ","))
      values.append(try parser.parseValue(of: column, named: name))
    }
    try parser.expect(UInt8(ascii: "]"))
    objects.append((reference, ObjectRecord(entity: entity, revision: revision, createdAt: createdAt, values: values)))
  }
}
