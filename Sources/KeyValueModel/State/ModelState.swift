import HashTreeCollections

/// Every object at one revision. A value: copies share their structure, so that one can be kept for as long as it
/// is read while the next is being made.
public struct ModelState: ObjectReader, Sendable {
  /// A relationship of another object that names an object, and that the object has no inverse of.
  struct Referrer: Hashable, Sendable {
    let object: Reference
    let storage: Int
  }

  /// What the objects are.
  public let schema: Schema
  /// Each entity's own objects, without those of its subclasses.
  private(set) var extents: [RecordTree]
  /// How often an object of each came or went.
  private var extentVersions: [UInt64]
  /// The relationships without an inverse that name each object, for deletions.
  private var referrers: TreeDictionary<Reference, TreeSet<Referrer>> = [:]
  /// For each entity's own objects the indexes, as `Entity.indexedKeys` lists their keys.
  private var indexes: [[ValueIndex]]

  /// A state without objects.
  public init(schema: Schema) {
    self.schema = schema
    extents = Array(repeating: RecordTree(), count: schema.entities.count)
    extentVersions = Array(repeating: 0, count: schema.entities.count)
    indexes = schema.entities.map { entity in
      entity.indexedKeys.map { ValueIndex(type: schema.type(of: entity.keys[$0.key])) }
    }
  }

  /// A state of these objects, each named once, as they stood in another state of the same schema: what a store held
  /// when it was written down. Their relationships are taken as they are; nothing is checked.
  package init(restoring objects: some Sequence<(reference: Reference, record: ObjectRecord)>, schema: Schema) {
    self.init(schema: schema)
    for (reference, record) in objects { replace(reference, with: record) }
  }

  /// What stands where a state was taken away, until it is put back: to be replaced, not to be used. Allocates nothing.
  init(placeholderFor schema: Schema) {
    self.schema = schema
    extents = []
    extentVersions = []
    indexes = []
  }

  /// How many objects there are.
  public var count: Int { extents.reduce(0) { $0 + $1.count } }

  /// The object of this name, nil where there is none.
  public func record(_ reference: Reference) -> ObjectRecord? {
    schema.entityIndex(of: reference).flatMap { extents[$0][reference] }
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
    schema.family(of: entity).reduce(0) { $0 + extentVersions[$1.index] }
  }

  /// How many objects of an entity there are, those of its subclasses included.
  package func objectCount(of entity: Entity) -> Int {
    schema.family(of: entity).reduce(0) { $0 + extents[$1.index].count }
  }

  /// The references of an entity's objects, those of its subclasses included, in order.
  public func references(of entity: Entity) -> [Reference] {
    schema.family(of: entity).flatMap { extents[$0.index].references }.sorted()
  }

  /// The same in no order. O(n).
  package func unorderedReferences(of entity: Entity) -> [Reference] {
    schema.family(of: entity).flatMap { extents[$0.index].references }
  }

  /// The references of an entity's own objects, without those of its subclasses, in no order. O(n).
  func ownReferences(of entity: Entity) -> [Reference] { extents[entity.index].references }

  /// The references of the objects of an entity, those of its subclasses included, whose indexed key has a value, in
  /// order; nil where the key is not indexed.
  public func references(of entity: Entity, whereKey key: Int, is value: Value) -> [Reference]? {
    guard let position = entity.indexedKeys.firstIndex(where: { $0.key == key }) else { return nil }
    return schema.family(of: entity).flatMap { indexes[$0.index][position].references(of: value) }.sorted()
  }

  /// The relationships without an inverse that name `target`, in order.
  func referrers(of target: Reference) -> [Referrer] {
    guard let set = referrers[target] else { return [] }
    return set.sorted { ($0.object, $0.storage) < ($1.object, $1.storage) }
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
        extents[index].update(record)
      } else {
        extents[index].remove(reference)
      }
    if (old == nil) != (record == nil) { extentVersions[index] += 1 }
    let entity = schema.entities[index]
    if !entity.referenceStorage.isEmpty { updateReferrers(reference, entity, from: old, to: record) }
    if !entity.indexedKeys.isEmpty { updateIndexes(reference, entity, from: old, to: record) }
    return old
  }

  /// Notes members that came to, and went from, a collection without inverse.
  mutating func updateReferrers(
    _ source: Reference, storage: Int, removed: some Sequence<Value>, inserted: some Sequence<Value>
  ) {
    let referrer = Referrer(object: source, storage: storage)
    for case .reference(let target) in removed { removeReferrer(referrer, of: target) }
    for case .reference(let target) in inserted { referrers[target, default: []].insert(referrer) }
  }

  private mutating func updateReferrers(
    _ source: Reference, _ entity: Entity, from old: ObjectRecord?, to new: ObjectRecord?
  ) {
    for storage in entity.referenceStorage {
      let before = old?.values[storage] ?? .null
      let after = new?.values[storage] ?? .null
      switch (before, after) {
      case (.members, .members): break
      case (.members(let list), _):
        updateReferrers(source, storage: storage, removed: list, inserted: EmptyCollection())
      case (_, .members(let list)):
        updateReferrers(source, storage: storage, removed: EmptyCollection(), inserted: list)
      default:
        guard before != after else { continue }
        updateReferrers(
          source, storage: storage, removed: CollectionOfOne(before), inserted: CollectionOfOne(after))
      }
    }
  }

  private mutating func removeReferrer(_ referrer: Referrer, of target: Reference) {
    referrers[target]?.remove(referrer)
    if referrers[target]?.isEmpty == true { referrers[target] = nil }
  }

  private mutating func updateIndexes(
    _ reference: Reference, _ entity: Entity, from old: ObjectRecord?, to new: ObjectRecord?
  ) {
    for (position, indexed) in entity.indexedKeys.enumerated() {
      indexes[entity.index][position].update(
        reference, from: old?.values[indexed.storage], to: new?.values[indexed.storage])
    }
  }
}
