import HashTreeCollections

/// The relationships without an inverse that name each object: what a deletion has to look for. Persistent, as the
/// state is.
///
/// Most are to-ones. Of these no more is kept than a hash of what each names, beside who names it: the names are in the
/// records, where a deletion looks, and a million links take 30 MB and not 80.
package struct Referrers: Sendable {
  /// A relationship of another object that names an object, and that the object has no inverse of.
  struct Referrer: Hashable, Sendable {
    let object: Reference
    let storage: Int
  }

  /// The to-ones.
  private var links = RankedTree<LinkOrder>()
  /// The collections, by the objects that are among their members.
  private var collections: TreeDictionary<Reference, TreeSet<Referrer>> = [:]

  /// No relationships.
  init() {}

  /// Those of all objects of a state, which were read in blocks.
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

  /// Brings links of the same place into the order that a tree wants.
  private static func sortEqualPlaces(of links: inout [Link]) {
    var first = 0
    for index in links.indices where index + 1 == links.count || links[index + 1].place != links[first].place {
      if index > first { links[first...index].sort(by: LinkOrder.precedes) }
      first = index + 1
    }
  }

  /// The relationships that name `target`, in order. `names` says whether a to-one of an object does.
  func naming(_ target: Reference, names: (Referrer) -> Bool) -> [Referrer] {
    var found = collections[target].map(Array.init) ?? []
    let first = Link.first(to: target)
    var candidates = links.makeIterator(from: links.lowerBound(of: first))
    while let link = candidates.next(), link.hash == first.hash {
      if names(link.referrer) { found.append(link.referrer) }
    }
    return found.sorted { ($0.object, $0.storage) < ($1.object, $1.storage) }
  }

  /// Notes members that came to, and went from, a collection without inverse.
  mutating func update(
    _ source: Reference, storage: Int, removed: some Sequence<Value>, inserted: some Sequence<Value>
  ) {
    let referrer = Referrer(object: source, storage: storage)
    for case .reference(let target) in removed { remove(referrer, of: target) }
    for case .reference(let target) in inserted { collections[target, default: []].insert(referrer) }
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
  /// A to-one that names an object. It names no other meanwhile: so it is one link, whatever else has the same hash.
  struct Link: HashOrdered {
    /// The hash of the target, and behind it where the relationship is stored.
    fileprivate let place: UInt64
    fileprivate let source: Reference

    init(to target: Reference, from source: Reference, _ storage: Int) {
      self.init(hash: UInt64(truncatingIfNeeded: target.hashValue) &>> 32, from: source, storage)
    }

    private init(hash: UInt64, from source: Reference, _ storage: Int) {
      place = hash &<< 32 | UInt64(storage + 1)
      self.source = source
    }

    /// What comes before all links to an object.
    fileprivate static func first(to target: Reference) -> Link { Link(to: target, from: target, -1) }

    var order: UInt64 { place }

    fileprivate var hash: UInt64 { place &>> 32 }

    fileprivate var referrer: Referrer { Referrer(object: source, storage: Int(place & 0xFFFF_FFFF) - 1) }
  }

  /// By the hashes of targets, and then whatever makes a difference.
  private enum LinkOrder: RankedOrder {
    static func precedes(_ left: Link, _ right: Link) -> Bool {
      left.place != right.place ? left.place < right.place : left.source < right.source
    }
  }
}
