/// Something that can be asked for objects: a state, or a past one seen through the changes since.
public protocol ObjectReader {
  /// The object of this name, nil where there is none.
  func record(_ reference: Reference) -> ObjectRecord?

  /// What a collection of an object folds into, where the reader keeps that up to date; nil where it has to be worked
  /// out from the members, as most readers' has.
  func folded(_ fold: CollectionFold, of owner: Reference) -> FoldedValue?

  /// The work that reading is part of, where it is counted and its results are remembered; nil where it is not.
  var work: ReadingWork? { get }

  /// What computed keys are worked out from, where the reader leaves out objects that someone may not read; nil where
  /// it has everything.
  var unguarded: (any ObjectReader)? { get }

  /// Whether the reader leaves out a key of an entity's objects.
  func hides(_ key: Int, of entity: Entity) -> Bool
}

// MARK: - Defaults

extension ObjectReader {
  /// Nothing is kept.
  public func folded(_ fold: CollectionFold, of owner: Reference) -> FoldedValue? { nil }

  /// Nothing is counted.
  public var work: ReadingWork? { nil }

  /// Nothing is left out.
  public var unguarded: (any ObjectReader)? { nil }

  /// No key is left out.
  public func hides(_ key: Int, of entity: Entity) -> Bool { false }
}

/// Key-value coding (KVC guide, "Accessing Object Properties"): reading through relationships and computed keys.
extension ObjectReader {
  /// The value for a key path. A null or a deleted object on the way makes it null; behind a collection it is the array
  /// of the members' values.
  public func value(of reference: Reference, at path: ModelKeyPath) -> Value {
    var latest = LatestRevision()
    return value(of: reference, at: path, latest: &latest)
  }

  /// The value at the end of a path of key indexes.
  public func value(of reference: Reference, at keys: some Collection<Int>) -> Value {
    var latest = LatestRevision()
    return value(of: reference, at: ArraySlice(keys), latest: &latest)
  }

  /// The value of one key; null where the object is not there.
  public func value(of reference: Reference, key: Int) -> Value {
    record(reference).map { value(of: $0, reference, key: key) } ?? .null
  }

  /// The value of one key of an object.
  public func value(of record: ObjectRecord, _ reference: Reference, key: Int) -> Value {
    var latest = LatestRevision()
    return value(of: record, reference, key: key, latest: &latest)
  }

  /// The value for a key path, and the last revision of any object that it was read from.
  package func reading(_ reference: Reference, at path: ModelKeyPath) -> (value: Value, latest: Revision) {
    var latest = LatestRevision()
    let value = self.value(of: reference, at: path, latest: &latest)
    return (value, latest.revision)
  }

  /// The last revision that changed an object along `path`, the first one included: the `ETag` of a key path.
  public func revision(of reference: Reference, along path: ModelKeyPath) -> Revision {
    var latest = LatestRevision()
    _ = value(of: reference, at: path, latest: &latest)
    return latest.revision
  }

  /// The last revision that changed an object or what its computed keys read: the `ETag` of an object.
  public func revision(of reference: Reference) -> Revision {
    guard let record = record(reference) else { return 0 }
    guard record.entity.hasComputedKeys else { return record.revision }
    var latest = LatestRevision(record.revision)
    for (key, column) in record.entity.layout.columns.enumerated() where column.storage < 0 {
      _ = value(of: record, reference, key: key, latest: &latest)
    }
    return latest.revision
  }

  // MARK: Paths

  /// `latest` grows to the last revision of any object that was read.
  private func value(of reference: Reference, at path: ModelKeyPath, latest: inout LatestRevision) -> Value {
    guard let operation = path.operation else { return value(of: reference, at: path.keys[...], latest: &latest) }
    guard let key = path.keys.last else { return .null }
    guard let fold = CollectionFold(operation, ofKey: key) else {
      let collection = value(of: reference, at: path.keys[...], latest: &latest)
      return value(of: operation, over: collection, latest: &latest)
    }
    let folded: FoldedValue
    if path.unobservable == nil {
      guard let owner = owner(of: path.keys, from: reference, latest: &latest) else { return .null }
      folded = value(of: fold, owner, latest: &latest)
    } else {
      // Behind a collection there is no one owner, but a list of what its members have.
      let collection = value(of: reference, at: path.keys[...], latest: &latest)
      folded = value(of: fold, over: collection, latest: &latest)
    }
    if case .value(let value) = folded { return value }
    return .null
  }

  /// Not for any collection of keys: this is a hot path, and what is generic is slower in readers of other modules.
  func value(of reference: Reference, at keys: ArraySlice<Int>, latest: inout LatestRevision) -> Value {
    var current = reference
    var value = Value.null
    var isFirst = true
    var index = keys.startIndex
    while index < keys.endIndex {
      if !isFirst {
        if case .members(let list) = value {
          let rest = keys[index...]
          return .array(list.map { self.value(ofMember: $0, at: rest, latest: &latest) })
        }
        guard case .reference(let next) = value else { return .null }
        current = next
      }
      isFirst = false
      guard let record = record(current) else { return .null }
      latest.note(record)
      value = self.value(of: record, current, key: keys[index], latest: &latest)
      keys.formIndex(after: &index)
    }
    return value
  }

  /// The object whose key the last of `keys` is; nil where the path ends before it.
  private func owner(of keys: [Int], from reference: Reference, latest: inout LatestRevision) -> Reference? {
    guard keys.count > 1 else { return reference }
    guard case .reference(let owner) = value(of: reference, at: keys.dropLast(), latest: &latest) else { return nil }
    return owner
  }

  func value(of record: ObjectRecord, _ reference: Reference, key: Int, latest: inout LatestRevision) -> Value {
    let column = record.entity.layout.columns[key]
    if column.storage >= 0 { return record.values[Int(column.storage)] }
    if let unguarded { return unguarded.value(of: record, reference, key: key, latest: &latest) }
    // A list that is made member by member, and that the objects of an answer may have in common.
    guard let work, record.entity.keys[key].valueType?.element != nil else {
      var inner = LatestRevision.ofComputedKey(latest.revision)
      defer { latest.note(inner.revision) }
      return computedValue(of: record, reference, key: key, column, latest: &inner)
    }
    let computation = ReadingWork.Computation(key: key, object: reference)
    if let known = work.known(computation) {
      work.spend()
      latest.note(known.latest)
      return known.result
    }
    var inner = LatestRevision.ofComputedKey()
    let value = self.computedValue(of: record, reference, key: key, column, latest: &inner)
    work.remember(value, latest: inner.revision, for: computation)
    latest.note(inner.revision)
    return value
  }

  private func computedValue(
    of record: ObjectRecord, _ reference: Reference, key: Int, _ column: RecordLayout.Column,
    latest: inout LatestRevision
  ) -> Value {
    if column.pathStart < column.pathEnd {
      return value(of: reference, at: record.entity.layout.path(of: column), latest: &latest)
    }
    guard case .computed(let computed) = record.entity.keys[key].kind, let formula = computed.formula else {
      return .null
    }
    switch formula {
    case .path(let path): return computed.converting(value(of: reference, at: path, latest: &latest)) ?? .null
    case .expression(let expression):
      return expression.value(of: reference, record, as: computed.conversion, in: self, latest: &latest)
    }
  }

  /// The value for keys of a member of a collection; of no keys, the member itself.
  private func value(ofMember member: Value, at keys: ArraySlice<Int>, latest: inout LatestRevision) -> Value {
    guard !keys.isEmpty else { return member }
    switch member {
    case .reference(let reference): return value(of: reference, at: keys, latest: &latest)
    case .array(let elements): return .array(elements.map { value(ofMember: $0, at: keys, latest: &latest) })
    case .members(let list): return .array(list.map { value(ofMember: $0, at: keys, latest: &latest) })
    default: return .null
    }
  }

  // MARK: Collections

  /// Operators that need no fold.
  private func value(of operation: CollectionOperation, over collection: Value, latest: inout LatestRevision) -> Value {
    if operation.function == .count {
      if case .members(let list) = collection { return .integer(Int64(list.count)) }
      return collection.elements.map { .integer(Int64($0.count)) } ?? .null
    }
    guard let elements = collection.elements else { return .null }
    work?.spend(elements.count)
    var values = elements.map { value(ofMember: $0, at: operation.memberKeys[...], latest: &latest) }
    switch operation.function {
    case .unionOfArrays, .distinctUnionOfArrays:
      values = values.flatMap { list in
        // One list may come many times, and is copied each time.
        guard work?.spend(list.elementCount) ?? true else { return [Value]() }
        return list.elements ?? []
      }
    default: break
    }
    values.removeAll(where: \.isNull)
    switch operation.function {
    case .distinctUnionOfObjects, .distinctUnionOfArrays: return .array(values.withoutRepetitions)
    default: return .array(values)
    }
  }

  /// What the collection of an object folds into: as the reader has it, or worked out from all members.
  private func value(of fold: CollectionFold, _ owner: Reference, latest: inout LatestRevision) -> FoldedValue {
    guard let record = record(owner) else { return .value(.null) }
    if let kept = folded(fold, of: owner) { return kept }
    latest.note(record)
    guard let work else {
      let collection = value(of: record, owner, key: fold.key, latest: &latest)
      return value(of: fold, over: collection, latest: &latest)
    }
    let folding = ReadingWork.Folding(
      fold: fold, owner: owner, isGuarded: unguarded != nil, isForComputedKey: latest.isForComputedKey)
    if let known = work.known(folding) {
      latest.note(known.latest)
      return known.result
    }
    var inner = latest.anew
    let collection = self.value(of: record, owner, key: fold.key, latest: &inner)
    let value = self.value(of: fold, over: collection, latest: &inner)
    work.remember(value, latest: inner.revision, for: folding)
    latest.note(inner.revision)
    return value
  }

  /// Null where there is no collection: behind a null.
  private func value(of fold: CollectionFold, over collection: Value, latest: inout LatestRevision) -> FoldedValue {
    var running = RunningFold(fold)
    work?.spend(collection.elementCount)
    switch collection {
    case .members(let list):
      for member in list { running.insert(contribution(of: member, to: fold, latest: &latest)) }
    case .array(let elements):
      for element in elements { running.insert(contribution(of: element, to: fold, latest: &latest)) }
    default: return .value(.null)
    }
    return running.value
  }

  /// What a member adds to a fold of its collection.
  package func contribution(of member: Value, to fold: CollectionFold) -> RunningFold.Contribution {
    var latest = LatestRevision()
    return contribution(of: member, to: fold, latest: &latest)
  }

  private func contribution(
    of member: Value, to fold: CollectionFold, latest: inout LatestRevision
  ) -> RunningFold.Contribution {
    switch fold.element {
    case .keys(let keys): .value(value(ofMember: member, at: keys[...], latest: &latest))
    case .expression(let expression): expression.contribution(of: member, in: self, latest: &latest)
    }
  }
}

// MARK: - JSON

extension ObjectReader {
  /// Appends an object as the specification has it, section 3: `@ref`, `@revision`, `@lifetime` where it
  /// has one, and all keys in the schema's order.
  /// Gives the last revision that changed anything of it, which is its `ETag`.
  ///
  /// Once there are more than `limit` bytes it stops, soon after; what it has appended is then no JSON.
  @discardableResult
  public func appendJSON(
    of reference: Reference, _ record: ObjectRecord, to bytes: inout [UInt8], upTo limit: Int = .max
  ) -> Revision {
    var latest = LatestRevision(record.revision)
    bytes.append(contentsOf: "{\"@ref\":\"".utf8)
    bytes.append(contentsOf: reference.text.utf8)
    bytes.append(contentsOf: "\",\"@revision\":".utf8)
    bytes.appendDecimal(record.revision)
    record.lease?.appendMember(to: &bytes)
    let layout = record.entity.layout
    for (key, column) in layout.columns.enumerated() {
      bytes.append(contentsOf: layout.names[Int(column.nameStart)..<Int(column.nameEnd)])
      if column.storage >= 0 {
        record.values.appendJSON(at: Int(column.storage), to: &bytes, upTo: limit)
      } else {
        value(of: record, reference, key: key, latest: &latest).appendJSON(to: &bytes, upTo: limit)
      }
      if bytes.count > limit { return latest.revision }
    }
    bytes.append(UInt8(ascii: "}"))
    return latest.revision
  }
}

/// The last revision of what a value was read from, which grows as the value is worked out.
///
/// What is named by a key path is an object along it, and counts with all its keys. What a computed key reads counts
/// with those keys that computed keys read of other objects; the object that is asked for is counted by who asks.
struct LatestRevision: Sendable {
  /// The revision; 0 as long as nothing was read.
  private(set) var revision: Revision
  /// Whether what is read is read for a computed key.
  fileprivate let isForComputedKey: Bool

  /// For the objects along a key path.
  fileprivate init(_ revision: Revision = 0) {
    self.init(revision, isForComputedKey: false)
  }

  private init(_ revision: Revision, isForComputedKey: Bool) {
    self.revision = revision
    self.isForComputedKey = isForComputedKey
  }

  /// For a computed key.
  static func ofComputedKey(_ revision: Revision = 0) -> LatestRevision {
    LatestRevision(revision, isForComputedKey: true)
  }

  /// An object was read.
  mutating func note(_ record: ObjectRecord) {
    revision = max(revision, isForComputedKey ? record.farRevision : record.revision)
  }

  /// What was worked out before was read from objects of that revision.
  mutating func note(_ revision: Revision) { self.revision = max(self.revision, revision) }

  /// Nothing read yet, for the same purpose.
  var anew: LatestRevision { LatestRevision(0, isForComputedKey: isForComputedKey) }
}

extension [Value] {
  /// Each value once, where it comes first, by how it is written.
  fileprivate var withoutRepetitions: [Value] {
    var seen: Set<Value> = []
    return filter { seen.insert($0.asWritten).inserted }
  }
}
