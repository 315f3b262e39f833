import HashTreeCollections

/// The relationships without an inverse that name each object: what a deletion has to look for. Persistent, as the
/// state is.
package struct Referrers: Sendable {
  /// A relationship of another object that names an object, and that the object has no inverse of.
  struct Referrer: Hashable, Sendable {
    let object: Reference
    let storage: Int
  }

  private var byTarget: TreeDictionary<Reference, TreeSet<Referrer>> = [:]

  /// No relationships.
  init() {}

  /// Those of the objects of a state, each of which is among `records` once.
  init(of records: [ObjectRecord]) {
    var links: [Link] = []
    for (index, record) in records.enumerated() {
      for storage in record.entity.referenceStorage {
        switch record.values[storage] {
        case .reference(let target): links.append(Link(to: target, from: index, storage))
        case .members(let list): update(record.reference, storage: storage, removed: EmptyCollection(), inserted: list)
        default: break
        }
      }
    }
    links.sort { $0.order < $1.order }
    for link in links {
      let record = records[Int(link.record)]
      guard case .reference(let target) = record.values[Int(link.storage)] else { continue }
      byTarget[target, default: []].insert(Referrer(object: record.reference, storage: Int(link.storage)))
    }
  }

  /// A to-one that is to be noted. They are noted in the order in which the dictionary has their targets, so that its
  /// nodes are in a cache when they are needed.
  private struct Link {
    let order: UInt64
    let record: Int32
    let storage: Int32

    init(to target: Reference, from record: Int, _ storage: Int) {
      // A hash trie of swift-collections goes by the low bits first.
      order = UInt64(bitReversing: UInt64(truncatingIfNeeded: target.hashValue))
      self.record = Int32(record)
      self.storage = Int32(storage)
    }
  }

  /// The relationships that name `target`, in order.
  func naming(_ target: Reference) -> [Referrer] {
    guard let set = byTarget[target] else { return [] }
    return set.sorted { ($0.object, $0.storage) < ($1.object, $1.storage) }
  }

  /// Notes members that came to, and went from, a collection without inverse.
  mutating func update(
    _ source: Reference, storage: Int, removed: some Sequence<Value>, inserted: some Sequence<Value>
  ) {
    let referrer = Referrer(object: source, storage: storage)
    for case .reference(let target) in removed { remove(referrer, of: target) }
    for case .reference(let target) in inserted { byTarget[target, default: []].insert(referrer) }
  }

  /// Notes what an object names now and did not before, and the reverse. The members of a collection that it has before
  /// and after are not looked at.
  mutating func update(_ source: Reference, _ entity: Entity, from old: ObjectRecord?, to new: ObjectRecord?) {
    for storage in entity.referenceStorage {
      let before = old?.values[storage] ?? .null
      let after = new?.values[storage] ?? .null
      switch (before, after) {
      case (.members, .members): break
      case (.members(let list), _): update(source, storage: storage, removed: list, inserted: EmptyCollection())
      case (_, .members(let list)): update(source, storage: storage, removed: EmptyCollection(), inserted: list)
      default:
        guard before != after else { continue }
        update(source, storage: storage, removed: CollectionOfOne(before), inserted: CollectionOfOne(after))
      }
    }
  }

  private mutating func remove(_ referrer: Referrer, of target: Reference) {
    byTarget[target]?.remove(referrer)
    if byTarget[target]?.isEmpty == true { byTarget[target] = nil }
  }
}

extension UInt64 {
  /// A number with its bits in the other order.
  fileprivate init(bitReversing bits: UInt64) {
    self = bits.byteSwapped
    for (mask, shift) in [(0x0F0F_0F0F_0F0F_0F0F, 4), (0x3333_3333_3333_3333, 2), (0x5555_5555_5555_5555, 1)] {
      let mask = UInt64(mask)
      self = (self & mask) << UInt64(shift) | (self >> UInt64(shift)) & mask
    }
  }
}
