import HashTreeCollections

/// The relationships without an inverse that name each object, for deletions. Persistent, as the state is.
///
/// Most are to-one relationships. For these only a hash of the target is stored besides the source: a deletion reads
/// the target itself from the records, so that a million links take 30 MB instead of 80.
package struct Referrers: Sendable {
  /// A relationship of another object that names an object which has no inverse of it.
  struct Referrer: Hashable, Sendable {
    let object: Reference
    let storage: Int
  }

  /// The to-one relationships.
  private var links = RankedTree<LinkOrder>()
  /// The collections, by the objects among their members.
  private var collections: TreeDictionary<Reference, TreeSet<Referrer>> = [:]

  /// Creates an index without relationships.
  init() {}

  /// Creates the index of all objects of a state, which were read in blocks.
  init(of blocks: [StateBlock]) {
    for block in blocks {
      for (referrer, list) in block.collections {
        update(referrer.object, storage: referrer.storage, removed: EmptyCollection(), inserted: list)
      }
    }
    var links = [Link].joined(inHashOrder: blocks.map(\.links))
    Self.sortEqualPlaces(of: &links)
    self.links = RankedTree(sorted: links)
  }

  /// Sorts links with the same place into the order of the tree.
  private static func sortEqualPlaces(of links: inout [Link]) {
    var first = 0
    for index in links.indices where index + 1 == links.count || links[index + 1].place != links[first].place {
      if index > first { links[first...index].sort(by: LinkOrder.precedes) }
      first = index + 1
    }
  }

  /// Returns the relationships that name `target`, in order. `names` returns true if a to-one relationship names it.
  func naming(_ target: Reference, names: (Referrer) -> Bool) -> [Referrer] {
    var found = collections[target].map(Array.init) ?? []
    let first = Link.first(to: target)
    var candidates = links.makeIterator(from: links.lowerBound(of: first))
    while let link = candidates.next(), link.hash == first.hash {
      if names(link.referrer) { found.append(link.referrer) }
    }
    return found.sorted { ($0.object, $0.storage) < ($1.object, $1.storage) }
  }

  /// Notes members that were inserted into, and removed from, a collection without an inverse.
  mutating func update(
    _ source: Reference, storage: Int, removed: some Sequence<Value>, inserted: some Sequence<Value>
  ) {
    let referrer = Referrer(object: source, storage: storage)
    for case .reference(let target) in removed { remove(referrer, of: target) }
    for case .reference(let target) in inserted { collections[target, default: []].insert(referrer) }
  }

  /// Notes which references of an object are new or gone. The members of a collection that exists before and after are
  /// not compared.
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
        if case .reference(let target) = before { links.remove(Link(to: target, from: source, storage)) }
        if case .reference(let target) = after { links.insert(Link(to: target, from: source, storage)) }
      }
    }
  }

  private mutating func remove(_ referrer: Referrer, of target: Reference) {
    collections[target]?.remove(referrer)
    if collections[target]?.isEmpty == true { collections[target] = nil }
  }
}

extension Referrers {
  /// A to-one relationship that names an object. It names only one at a time, so it is one link even if hashes are
  /// equal.
  struct Link: HashOrdered {
    /// The hash of the target, followed by the storage index of the relationship.
    fileprivate let place: UInt64
    fileprivate let source: Reference

    init(to target: Reference, from source: Reference, _ storage: Int) {
      self.init(hash: UInt64(truncatingIfNeeded: target.hashValue) &>> 32, from: source, storage)
    }

    private init(hash: UInt64, from source: Reference, _ storage: Int) {
      place = hash &<< 32 | UInt64(storage + 1)
      self.source = source
    }

    /// Returns a link that comes before all links to an object.
    fileprivate static func first(to target: Reference) -> Link { Link(to: target, from: target, -1) }

    var order: UInt64 { place }

    fileprivate var hash: UInt64 { place &>> 32 }

    fileprivate var referrer: Referrer { Referrer(object: source, storage: Int(place & 0xFFFF_FFFF) - 1) }
  }

  /// The order by the hashes of targets, then by all that distinguishes links.
  private enum LinkOrder: RankedOrder {
    static func precedes(_ left: Link, _ right: Link) -> Bool {
      left.place != right.place ? left.place < right.place : left.source < right.source
    }
  }
}
