/// A source of objects: a state, or a past one derived from the changes since.
public protocol ObjectReader {
  /// Returns the object with this reference, or nil if it does not exist.
  func record(_ reference: Reference) -> ObjectRecord?

  /// Returns the fold of an object's collection if the reader keeps it up to date; nil if it must be computed from the
  /// members, as for most readers.
  func folded(_ fold: CollectionFold, of owner: Reference) -> FoldedValue?

  /// The work that reading is part of, which counts it and remembers its results; nil if reading is not counted.
  var work: ReadingWork? { get }

  /// The reader from which computed keys are evaluated, if this one hides objects that a viewer may not read; nil if it
  /// hides nothing.
  var unguarded: (any ObjectReader)? { get }

  /// Returns true if the reader hides a key of an entity's objects.
  func hides(_ key: Int, of entity: Entity) -> Bool
}

// MARK: - Defaults

extension ObjectReader {
  /// Returns nil: no folds are kept.
  public func folded(_ fold: CollectionFold, of owner: Reference) -> FoldedValue? { nil }

  /// Nil: nothing is counted.
  public var work: ReadingWork? { nil }

  /// Nil: nothing is hidden.
  public var unguarded: (any ObjectReader)? { nil }

  /// Returns false: no key is hidden.
  public func hides(_ key: Int, of entity: Entity) -> Bool { false }
}

/// Key-value coding (KVC guide, "Accessing Object Properties"): reading through relationships and computed keys.
extension ObjectReader {
  /// Returns the value for a key path. A null or a deleted object on the path makes it null; after a collection it is
  /// the array of the members' values.
  public func value(of reference: Reference, at path: ModelKeyPath) -> Value {
    var latest = LatestRevision()
    return value(of: reference, at: path, latest: &latest)
  }

  /// Returns the value at the end of a path of key indexes.
  public func value(of reference: Reference, at keys: some Collection<Int>) -> Value {
    var latest = LatestRevision()
    return value(of: reference, at: ArraySlice(keys), latest: &latest)
  }

  /// Returns the value of one key; null if the object does not exist.
  public func value(of reference: Reference, key: Int) -> Value {
    record(reference).map { value(of: $0, reference, key: key) } ?? .null
  }

  /// Returns the value of one key of an object.
  public func value(of record: ObjectRecord, _ reference: Reference, key: Int) -> Value {
    var latest = LatestRevision()
    return value(of: record, reference, key: key, latest: &latest)
  }

  /// Returns the value for a key path, and the last revision of all objects that it was read from.
  package func reading(_ reference: Reference, at path: ModelKeyPath) -> (value: Value, latest: Revision) {
    var latest = LatestRevision()
    let value = self.value(of: reference, at: path, latest: &latest)
    return (value, latest.revision)
  }

  /// Returns the last revision that changed an object along `path`, including the first one: the `ETag` of a key path.
  public func revision(of reference: Reference, along path: ModelKeyPath) -> Revision {
    var latest = LatestRevision()
    _ = value(of: reference, at: path, latest: &latest)
    return latest.revision
  }

  /// Returns the last revision that changed an object or what its computed keys read: the `ETag` of an object.
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

  /// Returns the value for a key path, and raises `latest` to the last revision of all objects that were read.
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
      // After a collection there is no single owner, but a list of the members' values.
      let collection = value(of: reference, at: path.keys[...], latest: &latest)
      folded = value(of: fold, over: collection, latest: &latest)
    }
    if case .value(let value) = folded { return value }
    return .null
  }

  /// Returns the value at the end of a path. Not generic over collections of keys: this is a hot path, and generic code
  /// is slower in readers of other modules.
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

  /// Returns the object that has the last of `keys`; nil if the path ends before it.
  private func owner(of keys: [Int], from reference: Reference, latest: inout LatestRevision) -> Reference? {
    guard keys.count > 1 else { return reference }
    guard case .reference(let owner) = value(of: reference, at: keys.dropLast(), latest: &latest) else { return nil }
    return owner
  }

  func value(of record: ObjectRecord, _ reference: Reference, key: Int, latest: inout LatestRevision) -> Value {
    let column = record.entity.layout.columns[key]
    if column.storage >= 0 { return record.values[Int(column.storage)] }
    if let unguarded { return unguarded.value(of: record, reference, key: key, latest: &latest) }
    // Lists are built member by member, and several objects of an answer may share one.
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

  /// Returns the value at keys of a member of a collection; without keys, the member itself.
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

  /// Returns the value of an operator that needs no fold.
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
        // One list may occur many times, and is copied each time.
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

  /// Returns the fold of an object's collection: the one that the reader keeps, or one computed from all members.
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

  /// Returns the fold of a collection; null if there is no collection, as after a null.
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

  /// Returns the contribution of a member to a fold of its collection.
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
  /// Appends an object in the form of the specification, section 3: `@ref`, `@revision`, `@lifetime` if it has one, and
  /// all keys in the schema's order.
  ///
  /// Returns the last revision that changed any of it, which is its `ETag`. Stops soon after there are more than
  /// `limit` bytes; the appended text is then not valid JSON.
  @discardableResult
  public func appendJSON(
    of reference: Reference, _ record: ObjectRecord, to bytes: inout [UInt8], upTo limit: Int = .max
  ) -> Revision {
    var latest = LatestRevision(record.revision)
    record.appendJSON(of: reference, to: &bytes, upTo: limit) { key, bytes in
      value(of: record, reference, key: key, latest: &latest).appendJSON(to: &bytes, upTo: limit)
    }
    return latest.revision
  }
}

/// The last revision of the objects that a value was read from, updated while the value is computed.
///
/// An object along a key path counts with all its keys. An object that a computed key reads counts only with the keys
/// that computed keys of other objects read; the requested object itself is counted by the caller.
struct LatestRevision: Sendable {
  /// The revision; 0 until something is read.
  private(set) var revision: Revision
  /// True if objects are read for a computed key.
  fileprivate let isForComputedKey: Bool

  /// Creates the revision for the objects along a key path.
  fileprivate init(_ revision: Revision = 0) {
    self.init(revision, isForComputedKey: false)
  }

  private init(_ revision: Revision, isForComputedKey: Bool) {
    self.revision = revision
    self.isForComputedKey = isForComputedKey
  }

  /// Returns the revision for the objects that a computed key reads.
  static func ofComputedKey(_ revision: Revision = 0) -> LatestRevision {
    LatestRevision(revision, isForComputedKey: true)
  }

  /// Notes that an object was read.
  mutating func note(_ record: ObjectRecord) {
    revision = max(revision, isForComputedKey ? record.farRevision : record.revision)
  }

  /// Notes the revision of an earlier result that the value depends on.
  mutating func note(_ revision: Revision) { self.revision = max(self.revision, revision) }

  /// A new revision for the same purpose, with nothing read yet.
  var anew: LatestRevision { LatestRevision(0, isForComputedKey: isForComputedKey) }
}

extension [Value] {
  /// The values without repetitions, in the order of their first occurrence. Compares their written forms.
  fileprivate var withoutRepetitions: [Value] {
    var seen: Set<Value> = []
    return filter { seen.insert($0.asWritten).inserted }
  }
}
