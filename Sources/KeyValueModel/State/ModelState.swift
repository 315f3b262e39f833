internal import HashTreeCollections

/// Every object at one revision. A value: copies share their structure, so that one can be kept for as long as somebody
/// reads it while the next is being made.
public struct ModelState: ObjectReader, Sendable {
  /// A to-one of another object that names an object.
  struct Referrer: Hashable, Sendable {
    let object: Reference
    let storage: Int
  }

  /// What the objects are.
  public let schema: Schema
  private var objects: TreeDictionary<Reference, ObjectRecord> = [:]
  /// The references of each entity's own objects, without those of its subclasses.
  private var extents: [TreeSet<Reference>]
  /// How often each of them has changed.
  private var extentVersions: [UInt64]
  /// Who names an object, for deletions.
  private var referrers: TreeDictionary<Reference, TreeSet<Referrer>> = [:]

  /// A state without objects.
  public init(schema: Schema) {
    self.schema = schema
    extents = Array(repeating: [], count: schema.entities.count)
    extentVersions = Array(repeating: 0, count: schema.entities.count)
  }

  /// How many objects there are.
  public var count: Int { objects.count }

  /// The object of this name, nil where there is none.
  public func record(_ reference: Reference) -> ObjectRecord? {
    objects[reference]
  }

  /// The object of this name, or `unknown-object`; `unknown-entity` where the schema has no such entity.
  public func requireRecord(_ reference: Reference) throws(ModelError) -> ObjectRecord {
    if let record = objects[reference] { return record }
    _ = try schema.requireEntity(reference.entity)
    throw ModelError(.unknownObject, "there is no object \(reference)", object: reference)
  }

  /// A number that grows whenever an object of the entity, or of one that extends it, is made or deleted: as long as it
  /// is the same, so is what `references(of:)` gives.
  public func extentVersion(of entity: Entity) -> UInt64 {
    schema.family(of: entity).reduce(0) { $0 + extentVersions[$1.index] }
  }

  /// The references of an entity's objects, those of its subclasses included, in order.
  public func references(of entity: Entity) -> [Reference] {
    schema.family(of: entity).flatMap { Array(extents[$0.index]) }.sorted()
  }

  /// Who names `target` with a to-one, in order.
  func referrers(of target: Reference) -> [Referrer] {
    guard let set = referrers[target] else { return [] }
    return set.sorted { ($0.object, $0.storage) < ($1.object, $1.storage) }
  }

  /// Puts `record` in place of what stands under `reference`, or takes that away; gives what stood there.
  @discardableResult
  mutating func replace(_ reference: Reference, with record: ObjectRecord?) -> ObjectRecord? {
    let old: ObjectRecord?
    if let record {
      old = objects.updateValue(record, forKey: reference)
      if old == nil {
        extents[record.entity.index].insert(reference)
        extentVersions[record.entity.index] += 1
      }
    } else {
      old = objects.removeValue(forKey: reference)
      if let old {
        extents[old.entity.index].remove(reference)
        extentVersions[old.entity.index] += 1
      }
    }
    updateReferrers(reference, from: old, to: record)
    return old
  }

  private mutating func updateReferrers(_ source: Reference, from old: ObjectRecord?, to new: ObjectRecord?) {
    guard let entity = (new ?? old)?.entity else { return }
    for storage in entity.referenceStorage {
      let before = old?.values[storage] ?? .null
      let after = new?.values[storage] ?? .null
      guard before != after else { continue }
      let referrer = Referrer(object: source, storage: storage)
      if case .reference(let target) = before { removeReferrer(referrer, of: target) }
      if case .reference(let target) = after { referrers[target, default: []].insert(referrer) }
    }
  }

  private mutating func removeReferrer(_ referrer: Referrer, of target: Reference) {
    referrers[target]?.remove(referrer)
    if referrers[target]?.isEmpty == true { referrers[target] = nil }
  }
}
