import HashTreeCollections
import Support

/// Every object at one revision. A value: copies share their structure, so that one can be kept for as long as it
/// is read while the next is being made.
public struct ModelState: ObjectReader, Sendable {
  /// What the objects are.
  public let schema: Schema
  /// Those of each entity. One list for all that there is of an entity: a state is copied often, and each list would
  /// count one reference.
  private(set) var extents: [Extent]
  /// The bytes of memory that the objects take, with what is kept to find them. O(1).
  package private(set) var memoryBytes = 0
  /// The relationships without an inverse that name each object, for deletions.
  private var referrers = Referrers()

  /// A state without objects.
  public init(schema: Schema) {
    self.schema = schema
    extents = schema.entities.map { entity in
      Extent(indexes: entity.indexedKeys.map { ValueIndex(type: schema.type(of: entity.keys[$0.key])) })
    }
  }

  /// A state of these objects, each named once, as they stood in another state of the same schema: what a store held
  /// when it was written down. Their relationships are taken as they are; nothing is checked.
  package init(restoring objects: some Sequence<(reference: Reference, record: ObjectRecord)>, schema: Schema) {
    self.init(schema: schema)
    for (reference, record) in objects { replace(reference, with: record) }
  }

  /// A state of the objects of these blocks, as they stood in another state of the same schema: what a store held when
  /// it was written down. Nothing is checked, but that none of them is there twice. `referrers` gives what `Referrers`
  /// makes of them, and is asked in the end: another thread can do that meanwhile.
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
        throw StoredTextError(reason: "\(error.reference) is there twice", offset: 0)
      }
      extents[index].version += UInt64(entries.count)
      guard !entity.indexedKeys.isEmpty else { continue }
      for entry in entries { updateIndexes(entry.record.reference, entity, from: nil, to: entry.record) }
    }
    self.referrers = referrers()
  }

  /// What stands where a state was taken away, until it is put back: to be replaced, not to be used. Allocates nothing.
  init(placeholderFor schema: Schema) {
    self.schema = schema
    extents = []
  }

  /// How many objects there are.
  public var count: Int { extents.reduce(0) { $0 + $1.objects.count } }

  /// The object of this name, nil where there is none.
  public func record(_ reference: Reference) -> ObjectRecord? {
    schema.entityIndex(of: reference).flatMap { extents[$0].objects[reference] }
  }

  /// The object of this name, or `unknown-object`; `unknown-entity` where the schema has no such entity.
  public func requireRecord(_ reference: Reference) throws(ModelError) -> ObjectRecord {
    if let record = record(reference) { return record }
    _ = try schema.requireEntity(of: reference)
    throw ModelError(.unknownObject, "there is no object \(reference)", object: reference)
  }

  /// A number that grows whenever an object of the entity, or of one that extends it, is made or deleted: as long as it
  /// is the same, so is what `references(of:)` gives.
  public func extentVersion(of entity: Entity) -> UInt64 {
    schema.family(of: entity).reduce(0) { $0 + extents[$1.index].version }
  }

  /// How many objects of an entity there are, those of its subclasses included.
  package func objectCount(of entity: Entity) -> Int {
    schema.family(of: entity).reduce(0) { $0 + extents[$1.index].objects.count }
  }

  /// The references of an entity's objects, those of its subclasses included, in order.
  public func references(of entity: Entity) -> [Reference] {
    inOrder(schema.family(of: entity)) { $0.objects.references }
  }

  /// The same in no order. O(n).
  package func unorderedReferences(of entity: Entity) -> [Reference] {
    schema.family(of: entity).flatMap { extents[$0.index].objects.references }
  }

  /// The references of an entity's own objects, without those of its subclasses, in no order. O(n).
  func ownReferences(of entity: Entity) -> [Reference] { extents[entity.index].objects.references }

  /// The references of the objects of an entity, those of its subclasses included, whose indexed key has a value, in
  /// order; nil where the key is not indexed.
  public func references(of entity: Entity, whereKey key: Int, is value: Value) -> [Reference]? {
    guard let position = entity.indexedKeys.firstIndex(where: { $0.key == key }) else { return nil }
    return inOrder(schema.family(of: entity)) { $0.indexes[position].references(of: value) }
  }

  /// References of some entities, in order. The slash behind an entity's name precedes all that a name has.
  private func inOrder(_ entities: [Entity], _ references: (Extent) -> [Reference]) -> [Reference] {
    let entities = entities.count > 1 ? entities.sorted { $0.name.byteOrdering(to: $1.name) == .ascending } : entities
    return entities.flatMap { references(extents[$0.index]).sortedWithinEntity() }
  }

  /// The relationships without an inverse that name `target`, in order.
  func referrers(of target: Reference) -> [Referrers.Referrer] {
    referrers.naming(target) { record($0.object)?.values[$0.storage] == .reference(target) }
  }

  // MARK: Changing

  /// Puts `record` in place of what stands under `reference`, or takes that away; gives what stood there.
  ///
  /// Where there was a record and there is one, the members of its collections are those of before, but for what
  /// `updateReferrers` is given: comparing long lists at every write would cost their length.
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

  /// Puts a record in place of one of the same object that differs from it in attributes alone, and that is where
  /// `hash` leads.
  mutating func replaceAttributes(_ old: ObjectRecord, with new: ObjectRecord, _ hash: RecordHash) {
    let entity = new.entity
    extents[entity.index].objects.update(new, hash)
    memoryBytes += new.memoryBytes - old.memoryBytes
    if !entity.indexedKeys.isEmpty { updateIndexes(new.reference, entity, from: old, to: new) }
  }

  /// Sets an attribute that no index is over, in place where no other state has the object. False where there is none.
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

  /// Notes members that came to, and went from, a collection without inverse.
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

  /// Every object with its name, in no order, without a copy of them.
  package var all: Objects { Objects(trees: extents.map(\.objects)) }

  /// The objects of a state, one entity after the other.
  package struct Objects: Sequence {
    fileprivate let trees: [RecordTree]

    /// Begins with the first entity.
    package func makeIterator() -> Iterator { Iterator(trees: trees[...]) }

    /// Goes through the objects.
    package struct Iterator: IteratorProtocol {
      fileprivate var trees: ArraySlice<RecordTree>
      private var objects = RecordTree().makeIterator()

      fileprivate init(trees: ArraySlice<RecordTree>) {
        self.trees = trees
      }

      /// The next object.
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
  /// How often an object came or went.
  fileprivate var version: UInt64 = 0
  /// The indexes, as `Entity.indexedKeys` lists their keys.
  fileprivate var indexes: [ValueIndex]
}

/// Which objects have which value for one key. Persistent, as the state is.
private struct ValueIndex: Sendable {
  private var references: TreeDictionary<Value, TreeSet<Reference>> = [:]
  private let isOverDates: Bool

  /// An index over values of a type; dates are the same when they name the same instant.
  init(type: ValueType?) {
    isOverDates = type == .attribute(.date)
  }

  /// The objects that have `value`, in no order.
  func references(of value: Value) -> [Reference] {
    references[entry(of: value)].map(Array.init) ?? []
  }

  /// Notes that an object has another value than before; nil where it is not there.
  mutating func update(_ reference: Reference, from old: Value?, to new: Value?) {
    let (before, after) = (old.map(entry), new.map(entry))
    guard before != after else { return }
    if let before {
      references[before]?.remove(reference)
      if references[before]?.isEmpty == true { references[before] = nil }
    }
    if let after { references[after, default: []].insert(reference) }
  }

  /// The value under which objects are found.
  private func entry(of value: Value) -> Value {
    guard isOverDates, case .string(let text) = value, let instant = RFC3339Instant(text) else {
      return value.withoutSignOfZero
    }
    return .array([.integer(instant.seconds), .integer(Int64(instant.nanoseconds))])
  }
}
