/// Writes the objects of a state as blocks of text, each of which can be read on its own.
///
/// A block is a JSON array with an element for each entity that it has objects of: the entity, the names of its stored
/// keys, and for each object its id, the revision that last set a key, the revision that created it, and the values of
/// the keys: `[["Account",["balance","owner"],[["1",12,3,100.0,"Person/7"],…]],…]`. If another revision last set a key
/// that computed keys of other objects read, both are given: `["1",[12,9],3,…]`. The lease of an object that has one
/// follows the values. Objects are in the order of the schema's entities and of their references, so that equal states
/// make equal blocks.
package struct StateEncoder: Sendable {
  private let state: ModelState
  private let blockBytes: Int
  private let keepsFarRevisions: Bool
  /// The index of the current entity; `references` has its remaining objects.
  private var entity = 0
  private var references: ArraySlice<Reference> = []
  private var isEntityBegun = false

  /// Creates an encoder of the state's objects.
  ///
  /// A block ends with the object with which it reaches `blockBytes`; an object with very long values is not divided.
  /// Without `keepsFarRevisions` the blocks are those of an earlier version, for comparison.
  package init(_ state: ModelState, blockBytes: Int = 1 << 16, keepsFarRevisions: Bool = true) {
    self.state = state
    self.blockBytes = blockBytes
    self.keepsFarRevisions = keepsFarRevisions
  }

  /// Returns the next block, or nil if all objects are written. O(n) in its length; the first block of an entity also
  /// sorts the references of all its objects.
  package mutating func nextBlock() -> [UInt8]? {
    var bytes: [UInt8] = []
    while bytes.count < blockBytes, findObjects() {
      if bytes.isEmpty { bytes.reserveCapacity(blockBytes + blockBytes / 8) }
      bytes.append(UInt8(ascii: bytes.isEmpty ? "[" : ","))
      appendObjects(to: &bytes)
    }
    guard !bytes.isEmpty else { return nil }
    bytes.append(UInt8(ascii: "]"))
    return bytes
  }

  /// Advances to an entity with objects left to write. Returns false if there is none.
  private mutating func findObjects() -> Bool {
    while references.isEmpty {
      if isEntityBegun { entity += 1 }
      guard entity < state.schema.entities.count else { return false }
      isEntityBegun = true
      references = state.ownReferences(of: state.schema.entities[entity]).sortedWithinEntity()[...]
    }
    return true
  }

  private mutating func appendObjects(to bytes: inout [UInt8]) {
    let entity = state.schema.entities[entity]
    bytes.append(UInt8(ascii: "["))
    bytes.appendJSONString(entity.name)
    bytes.appendComma()
    bytes.appendList(entity.storedKeys) { $1.appendJSONString($0.name) }
    bytes.appendComma()
    let columns = entity.storedKeys.map(StoredColumn.init)
    var isFirst = true
    // Writes at least one object, however long the block is: a block without one would not be the last.
    while isFirst || bytes.count < blockBytes, let reference = references.popFirst() {
      guard let record = state.record(reference) else { continue }
      bytes.append(UInt8(ascii: isFirst ? "[" : ","))
      isFirst = false
      append(reference, record, columns, to: &bytes)
    }
    bytes.append(contentsOf: isFirst ? "[]]".utf8 : "]]".utf8)
  }

  private func append(
    _ reference: Reference, _ record: ObjectRecord, _ columns: [StoredColumn], to bytes: inout [UInt8]
  ) {
    bytes.append(contentsOf: "[\"".utf8)
    bytes.append(contentsOf: reference.idBytes)
    bytes.append(contentsOf: "\",".utf8)
    if keepsFarRevisions, record.entity.farKeeping == .apart, record.farRevision < record.revision {
      bytes.append(UInt8(ascii: "["))
      bytes.appendDecimal(record.revision)
      bytes.appendComma()
      bytes.appendDecimal(record.farRevision)
      bytes.append(UInt8(ascii: "]"))
    } else {
      bytes.appendDecimal(record.revision)
    }
    bytes.appendComma()
    bytes.appendDecimal(record.createdAt)
    for (column, value) in zip(columns, record.values) {
      bytes.appendComma()
      column.append(value, to: &bytes)
    }
    record.lease?.appendStoredText(to: &bytes)
    bytes.append(UInt8(ascii: "]"))
  }
}

/// The type of a stored key, which determines how its values are written: without their own type if the key's says
/// enough, so that a to-one is a string and a to-many an array.
enum StoredColumn {
  case attribute(AttributeType)
  case toOne
  case objects(isOrdered: Bool)
  case values(isOrdered: Bool, AttributeType)

  /// Creates the column of a stored key.
  init(_ key: Key) {
    switch key.kind {
    case .attribute(let attribute): self = .attribute(attribute.type)
    case .toOne: self = .toOne
    case .toMany(let toMany):
      switch toMany.member {
      case .object: self = .objects(isOrdered: toMany.isOrdered)
      case .value(let attribute): self = .values(isOrdered: toMany.isOrdered, attribute.type)
      }
    case .computed: preconditionFailure("a computed key is not stored")
    }
  }

  /// Appends a value of the key.
  fileprivate func append(_ value: Value, to bytes: inout [UInt8]) {
    switch (self, value) {
    case (.toOne, .reference(let reference)): bytes.appendQuoted(reference)
    case (.objects, .members(let list)):
      bytes.appendList(list) { member, bytes in
        if case .reference(let reference) = member {
          bytes.appendQuoted(reference)
        } else {
          member.appendStoredText(.exact, to: &bytes)
        }
      }
    case (.values, .members(let list)): bytes.appendList(list) { $0.appendStoredText(.exact, to: &$1) }
    default: value.appendStoredText(.exact, to: &bytes)
    }
  }
}
