import HashTreeCollections
import Support

/// All objects at one revision. A value: copies share their structure, so that a reader can keep one while the next is
/// being made.
public struct ModelState: ObjectReader, Sendable {
  /// The schema of the objects.
  public let schema: Schema
  /// The extent of each entity. One array holds all the data of the entities: a state is copied often, and a copy
  /// retains each array.
  private(set) var extents: [Extent]
  /// The bytes of memory that the objects and the indexes for finding them take. O(1).
  package private(set) var memoryBytes = 0
  /// The relationships without an inverse that name each object, for deletions.
  private var referrers = Referrers()

  /// Creates a state without objects.
  public init(schema: Schema) {
    self.schema = schema
    extents = schema.entities.map { entity in
      Extent(indexes: entity.indexedKeys.map { ValueIndex(type: schema.type(of: entity.keys[$0.key])) })
    }
  }

  /// Creates a state from the objects of another state with the same schema, each given once, as when a stored state is
  /// loaded. Relationships are taken over as they are; nothing is checked.
  package init(restoring objects: some Sequence<(reference: Reference, record: ObjectRecord)>, schema: Schema) {
    self.init(schema: schema)
    for (reference, record) in objects { replace(reference, with: record) }
  }

  /// Creates a state from blocks of the objects of another state with the same schema, as when a stored state is
  /// loaded. Nothing is checked except that no object occurs twice.
  ///
  /// `referrers` returns the `Referrers` of the blocks. It is called last, so that another thread can compute them
  /// meanwhile.
  init(
    restoring blocks: [StateBlock], schema: Schema, referrers: () -> Referrers
  ) throws(StoredTextError) {
    self.init(schema: schema)
    var lists: [[[RecordTree.Entry]]] = Array(repeating: [], count: extents.count)
    for block in blocks {
      for extent in block.extents { lists[extent.entity].append(extent.entries) }
      memoryBytes += block.memoryBytes
    }
    for (index, entity) in schema.entities.enumerated() {
      let entries = [RecordTree.Entry].joined(inHashOrder: lists[index])
      do throws(RecordTree.Repetition) {
        extents[index].objects = try RecordTree(sorted: entries)
      } catch {
        throw StoredTextError(reason: "\(error.reference) occurs twice", offset: 0)
      }
      extents[index].version += UInt64(entries.count)
      guard !entity.indexedKeys.isEmpty else { continue }
      for entry in entries { updateIndexes(entry.record.reference, entity, from: nil, to: entry.record) }
    }
    self.referrers = referrers()
  }

  /// Creates a placeholder for a state that was taken away, until it is put back: it must be replaced, not used.
  /// Allocates nothing.
  init(placeholderFor schema: Schema) {
    self.schema = schema
    extents = []
  }

  /// The number of objects.
  public var count: Int { extents.reduce(0) { $0 + $1.objects.count } }

  /// Returns the object with this reference, or nil if it does not exist.
  public func record(_ reference: Reference) -> ObjectRecord? {
    schema.entityIndex(of: reference).flatMap { extents[$0].objects[reference] }
  }

  /// Returns the object with this reference. Throws `unknown-object` if it does not exist, and `unknown-entity` if the
  /// schema does not have its entity.
  public func requireRecord(_ reference: Reference) throws(ModelError) -> ObjectRecord {
    if let record = record(reference) { return record }
    _ = try schema.requireEntity(of: reference)
    throw ModelError(.unknownObject, "object \(reference) does not exist", object: reference)
  }

  /// Returns a number that grows whenever an object of the entity, or of one that extends it, is created or deleted:
  /// while it is unchanged, so is the result of `references(of:)`.
  public func extentVersion(of entity: Entity) -> UInt64 {
    schema.family(of: entity).reduce(0) { $0 + extents[$1.index].version }
  }

  /// Returns the number of objects of an entity and its subclasses.
  package func objectCount(of entity: Entity) -> Int {
    schema.family(of: entity).reduce(0) { $0 + extents[$1.index].objects.count }
  }

  /// Returns the references of the objects of an entity and its subclasses, in order.
  public func references(of entity: Entity) -> [Reference] {
    inOrder(schema.family(of: entity)) { $0.objects.references }
  }

  /// Returns the references of the objects of an entity and its subclasses, in no particular order. O(n).
  package func unorderedReferences(of entity: Entity) -> [Reference] {
    schema.family(of: entity).flatMap { extents[$0.index].objects.references }
  }

  /// Returns the references of an entity's own objects, without those of its subclasses, in no particular order. O(n).
  func ownReferences(of entity: Entity) -> [Reference] { extents[entity.index].objects.references }

  /// Returns the references of the objects of an entity and its subclasses whose indexed key has a value, in order; nil
  /// if the key is not indexed.
  public func references(of entity: Entity, whereKey key: Int, is value: Value) -> [Reference]? {
    guard let position = entity.indexedKeys.firstIndex(where: { $0.key == key }) else { return nil }
    return inOrder(schema.family(of: entity)) { $0.indexes[position].references(of: value) }
  }

  /// Returns references of some entities, in order. The slash after an entity's name precedes every character of a
  /// name.
  private func inOrder(_ entities: [Entity], _ references: (Extent) -> [Reference]) -> [Reference] {
    let entities = entities.count > 1 ? entities.sorted { $0.name.byteOrdering(to: $1.name) == .ascending } : entities
    return entities.flatMap { references(extents[$0.index]).sortedWithinEntity() }
  }

  /// Returns the relationships without an inverse that name `target`, in order.
  func referrers(of target: Reference) -> [Referrers.Referrer] {
    referrers.naming(target) { record($0.object)?.values[$0.storage] == .reference(target) }
  }

  // MARK: Changing

  /// Replaces the record under `reference` by `record`, or removes it if that is nil. Returns the previous record.
  ///
  /// If there was a record and there is a new one, the members of its collections must be unchanged except for those
  /// given to `updateReferrers`: comparing long lists at every write would cost their length.
  @discardableResult
  mutating func replace(_ reference: Reference, with record: ObjectRecord?) -> ObjectRecord? {
    assert(record.map { $0.isNamed(reference) } ?? true, "a record of another object")
    guard let index = record?.entity.index ?? schema.entityIndex(of: reference) else { return nil }
    let old =
      if let record {
        extents[index].objects.update(record)
      } else {
        extents[index].objects.remove(reference)
      }
    if (old == nil) != (record == nil) { extents[index].version += 1 }
    memoryBytes += (record?.memoryBytes ?? 0) - (old?.memoryBytes ?? 0)
    let entity = schema.entities[index]
    if !entity.referenceStorage.isEmpty { referrers.update(reference, entity, from: old, to: record) }
    if !entity.indexedKeys.isEmpty { updateIndexes(reference, entity, from: old, to: record) }
    return old
  }

  /// Replaces a record by one of the same object that differs from it only in attributes; `hash` is that of the
  /// object's reference.
  mutating func replaceAttributes(_ old: ObjectRecord, with new: ObjectRecord, _ hash: RecordHash) {
    let entity = new.entity
    extents[entity.index].objects.update(new, hash)
    memoryBytes += new.memoryBytes - old.memoryBytes
    if !entity.indexedKeys.isEmpty { updateIndexes(new.reference, entity, from: old, to: new) }
  }

  /// Sets an attribute that is not indexed, in place if no other state shares the object. Returns false if the object
  /// does not exist.
  mutating func setAttribute(
    of reference: Reference, _ column: RecordLayout.Column, to value: Value, entity index: Int, revision: Revision
  ) -> Bool {
    var growth = 0
    defer { memoryBytes += growth }
    return extents[index].objects.change(reference) { record in
      let before = record.memoryBytes
      record.set(value, at: Int(column.storage))
      record.noteSetting(by: revision, isReadFromAfar: column.isReadFromAfar)
      growth = record.memoryBytes - before
    }
  }

  /// Notes members that were inserted into, and removed from, a collection without an inverse.
  mutating func updateReferrers(
    _ source: Reference, storage: Int, removed: some Sequence<Value>, inserted: some Sequence<Value>
  ) {
    referrers.update(source, storage: storage, removed: removed, inserted: inserted)
  }

  private mutating func updateIndexes(
    _ reference: Reference, _ entity: Entity, from old: ObjectRecord?, to new: ObjectRecord?
  ) {
    for (position, indexed) in entity.indexedKeys.enumerated() {
      extents[entity.index].indexes[position].update(
        reference, from: old?.values[indexed.storage], to: new?.values[indexed.storage])
    }
  }

  // MARK: All objects

  /// All objects with their references, in no particular order, without copying them.
  package var all: Objects { Objects(trees: extents.map(\.objects)) }

  /// The objects of a state, one entity after the other.
  package struct Objects: Sequence {
    fileprivate let trees: [RecordTree]

    /// Returns an iterator that begins with the first entity.
    package func makeIterator() -> Iterator { Iterator(trees: trees[...]) }

    /// An iterator over the objects.
    package struct Iterator: IteratorProtocol {
      fileprivate var trees: ArraySlice<RecordTree>
      private var objects = RecordTree().makeIterator()

      fileprivate init(trees: ArraySlice<RecordTree>) {
        self.trees = trees
      }

      /// Returns the next object.
      package mutating func next() -> (key: Reference, value: ObjectRecord)? {
        while true {
          if let object = objects.next() { return object }
          guard let tree = trees.popFirst() else { return nil }
          objects = tree.makeIterator()
        }
      }
    }
  }
}

/// An entity's own objects, without those of its subclasses.
struct Extent: Sendable {
  /// The objects.
  fileprivate(set) var objects = RecordTree()
  /// The number of times that an object was created or deleted.
  fileprivate var version: UInt64 = 0
  /// The indexes, in the order of `Entity.indexedKeys`.
  fileprivate var indexes: [ValueIndex]
}

/// An index of the objects by their value for one key. Persistent, as the state is.
private struct ValueIndex: Sendable {
  private var references: TreeDictionary<Value, TreeSet<Reference>> = [:]
  private let isOverDates: Bool

  /// Creates an index over values of a type; dates are the same if they name the same instant.
  init(type: ValueType?) {
    isOverDates = type == .attribute(.date)
  }

  /// Returns the objects that have `value`, in no particular order.
  func references(of value: Value) -> [Reference] {
    references[entry(of: value)].map(Array.init) ?? []
  }

  /// Notes that the value of an object has changed; nil if the object did not exist, or no longer exists.
  mutating func update(_ reference: Reference, from old: Value?, to new: Value?) {
    let (before, after) = (old.map(entry), new.map(entry))
    guard before != after else { return }
    if let before {
      references[before]?.remove(reference)
      if references[before]?.isEmpty == true { references[before] = nil }
    }
    if let after { references[after, default: []].insert(reference) }
  }

  /// Returns the form of a value under which objects are indexed.
  private func entry(of value: Value) -> Value {
    guard isOverDates, case .string(let text) = value, let instant = RFC3339Instant(text) else {
      return value.withoutSignOfZero
    }
    return .array([.integer(instant.seconds), .integer(Int64(instant.nanoseconds))])
  }
}
