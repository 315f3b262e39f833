/// Reads one block of a state.
struct StateBlockReader {
  private var parser: StoredTextParser
  private let schema: Schema
  private var objects: [ObjectRecord] = []
  /// The values of the object under way: kept, so that not every object allocates a list for them.
  private var values: [Value] = []

  init(_ bytes: UnsafeBufferPointer<UInt8>, schema: Schema) {
    parser = StoredTextParser(bytes)
    self.schema = schema
  }

  /// The objects of the block.
  mutating func read() throws(JSONError) -> [ObjectRecord] {
    try parser.expect("[")
    repeat { try readEntity() } while parser.takes(",")
    try parser.expect("]")
    try parser.expectEnd()
    return objects
  }

  private mutating func readEntity() throws(JSONError) {
    try parser.expect("[")
    let start = parser.position
    let name = try parser.parseQuoted()
    guard let entity = schema.entity(named: name) else {
      throw JSONError(reason: "the schema has no entity '\(name)'", offset: start)
    }
    try parser.expect(",")
    let keys = try readKeys(of: entity)
    try parser.expect(",")
    try parser.expect("[")
    if !parser.takes("]") {
      repeat { try readObject(entity, keys) } while parser.takes(",")
      try parser.expect("]")
    }
    try parser.expect("]")
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
    try parser.expect("[")
    let start = parser.position
    let id = try parser.parseQuoted()
    guard let reference = Reference(entity: entity.name, id: id) else {
      throw JSONError(reason: "'\(id)' is no id", offset: start)
    }
    try parser.expect(",")
    let (revision, farRevision) = try readRevisions()
    try parser.expect(",")
    let createdAt = try parser.parseUnsigned()
    guard createdAt <= farRevision, farRevision <= revision else {
      throw parser.error("\(reference) was changed before it was made")
    }
    values.removeAll(keepingCapacity: true)
    for (name, column) in keys {
      try parser.expect(",")
      values.append(try parser.parseValue(of: column, named: name))
    }
    let lease = parser.takes(",") ? try parser.parseLease() : nil
    try parser.expect("]")
    objects.append(
      ObjectRecord(
        reference, entity: entity, revision: revision, createdAt: createdAt, values: values, lease: lease,
        farRevision: farRevision))
  }

  /// The revision that last set a key, and the one that last set a key that is read from afar.
  private mutating func readRevisions() throws(JSONError) -> (Revision, Revision) {
    guard parser.takes("[") else {
      let revision = try parser.parseUnsigned()
      return (revision, revision)
    }
    let revision = try parser.parseUnsigned()
    try parser.expect(",")
    let farRevision = try parser.parseUnsigned()
    try parser.expect("]")
    return (revision, farRevision)
  }
}
