/// Makes a state from the blocks that `StateEncoder` wrote, in any order.
///
/// `block(of:schema:)` reads a block independently, so that many threads can read blocks; `insert` adds the results,
/// one after the other.
package struct StateDecoder: Sendable {
  private let schema: Schema
  private var blocks: [StateBlock] = []
  /// The number of objects that have been added.
  package private(set) var count = 0

  /// Creates a decoder of blocks of a state with this schema.
  package init(schema: Schema) {
    self.schema = schema
  }

  /// Returns the objects of a block. O(n) in its length.
  ///
  /// Throws if the text is not the output of an encoder, or if its entities and keys, or the types of their values,
  /// differ from the schema. Whether relationships are consistent is not checked.
  package static func block(of bytes: [UInt8], schema: Schema) throws(StoredTextError) -> StateBlock {
    try bytes.withUnsafeBufferPointer { buffer throws(StoredTextError) in
      var reader = StateBlockReader(buffer, schema: schema)
      return StateBlock(try reader.read())
    }
  }

  /// Adds the objects of a block.
  package mutating func insert(_ block: StateBlock) {
    blocks.append(block)
    count += block.count
  }

  /// Returns the referrers that `finish` takes: half of its work, which another thread can do meanwhile.
  package func referrers() -> Referrers { Referrers(of: blocks) }

  /// Returns the state of all added objects; throws if one occurs twice. `referrers` returns the result of the function
  /// of that name; if it is nil, the calling thread computes it.
  package consuming func finish(
    referrers: (() -> Referrers)? = nil
  ) throws(StoredTextError) -> ModelState {
    let blocks = blocks
    return try ModelState(restoring: blocks, schema: schema, referrers: referrers ?? { Referrers(of: blocks) })
  }
}

/// The objects of a block, with what their state needs of each: it is computed when the block is read, by many threads,
/// and while the objects are in a cache.
package struct StateBlock: Sendable {
  /// The objects of each entity in the block, by the index of the entity.
  let extents: [(entity: Int, entries: [RecordTree.Entry])]
  /// The to-one relationships without an inverse.
  let links: [Referrers.Link]
  /// The collections without an inverse, with their members.
  let collections: [(referrer: Referrers.Referrer, members: MemberList)]

  /// The bytes of memory that the objects take.
  let memoryBytes: Int

  /// Creates a block from its records.
  fileprivate init(_ records: [ObjectRecord]) {
    var extents: [(entity: Int, entries: [RecordTree.Entry])] = []
    var links: [Referrers.Link] = []
    var collections: [(referrer: Referrers.Referrer, members: MemberList)] = []
    links.reserveCapacity(records.count)
    for record in records {
      let entity = record.entity
      if extents.last?.entity != entity.index {
        extents.append((entity.index, []))
        // Most blocks have objects of one entity.
        extents[extents.count - 1].entries.reserveCapacity(records.count)
      }
      extents[extents.count - 1].entries.append(RecordTree.Entry(record))
      for storage in entity.referenceStorage {
        switch record.values[storage] {
        case .reference(let target): links.append(Referrers.Link(to: target, from: record.reference, storage))
        case .members(let list): collections.append((.init(object: record.reference, storage: storage), list))
        default: break
        }
      }
    }
    memoryBytes = records.reduce(0) { $0 + $1.memoryBytes }
    self.extents = extents
    self.links = links
    self.collections = collections
  }

  /// The number of objects.
  package var count: Int { extents.reduce(0) { $0 + $1.entries.count } }
}

/// Reads one block of a state.
private struct StateBlockReader {
  private var parser: StoredTextParser
  private let schema: Schema
  private var objects: [ObjectRecord] = []
  /// The values of the current object, reused so that not every object allocates a list for them.
  private var values: [Value] = []

  init(_ bytes: UnsafeBufferPointer<UInt8>, schema: Schema) {
    parser = StoredTextParser(bytes)
    self.schema = schema
  }

  /// Returns the objects of the block.
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

  /// Returns the stored keys, which must be those of the schema in its order.
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
      throw JSONError(reason: "'\(id)' is not an id", offset: start)
    }
    try parser.expect(",")
    let (revision, farRevision) = try readRevisions()
    try parser.expect(",")
    let createdAt = try parser.parseUnsigned()
    guard createdAt <= farRevision, farRevision <= revision else {
      throw parser.error("\(reference) was changed before it was created")
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

  /// Returns the revision that last set a key, and the one that last set a key that other objects' computed keys read.
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

extension JSONParser where Dialect == StoredJSON {
  /// Parses a value of a column; `name` is that of its key.
  fileprivate mutating func parseValue(of column: StoredColumn, named name: String) throws(JSONError) -> Value {
    switch column {
    case .attribute(let type): return try parseValue(of: type, named: name, orNull: true)
    case .toOne:
      if isNext("n") { return try parseValue() }
      return .reference(try parseReference())
    case .objects(let isOrdered):
      let members = try parseList { parser throws(JSONError) in Value.reference(try parser.parseReference()) }
      return try memberList(members, isOrdered: isOrdered, named: name)
    case .values(let isOrdered, let type):
      let members = try parseList { parser throws(JSONError) in
        try parser.parseValue(of: type, named: name, orNull: false)
      }
      return try memberList(members, isOrdered: isOrdered, named: name)
    }
  }

  private func memberList(
    _ members: [Value], isOrdered: Bool, named name: String
  ) throws(JSONError) -> Value {
    let list = MemberList(members, isOrdered: isOrdered)
    guard list.count == members.count else { throw error("'\(name)' has a duplicate member") }
    return .members(list)
  }

  private mutating func parseValue(
    of type: AttributeType, named name: String, orNull: Bool
  ) throws(JSONError) -> Value {
    let start = position
    let value = try parseValue()
    switch (type, value) {
    case (.string, .string), (.date, .string), (.integer, .integer), (.number, .number), (.boolean, .bool), (.json, _):
      return value
    case (_, .null) where orNull: return value
    default:
      throw JSONError(reason: "'\(name)' must be \(type.article), not \(value.kind)", offset: start)
    }
  }
}
