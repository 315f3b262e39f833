package import KeyValueModel
import Support

/// A cache of short-lived results that save the next client the same work, each with a revision and a weight. The total
/// weight is bounded; the oldest results are evicted first.
///
/// Look up a result that is shared unchanged with `item(for:)`. Take out a result that its user changes with
/// `take(_:)`, and put it back afterwards: such a result has one owner at a time, and a key has as many results as were
/// in use at once.
package struct BoundedCache<Key: Hashable & Sendable, Item: Sendable>: Sendable {
  private struct Entry: Sendable {
    let key: Key
    let item: Item
    let revision: Revision
    let weight: Int
  }

  private let weightLimit: Int
  private var entries: [UInt64: Entry] = [:]
  private var numbers: [Key: [UInt64]] = [:]
  /// A lower bound of the numbers in `entries`.
  private var oldest: UInt64 = 0
  private var next: UInt64 = 0
  /// The total weight of all cached results.
  package private(set) var weight = 0

  /// Creates an empty cache with a limit for the total weight.
  package init(weightLimit: Int) {
    self.weightLimit = weightLimit
  }

  /// The number of cached results.
  package var count: Int { entries.count }

  /// Returns the latest result for a key, which stays in the cache.
  package func item(for key: Key) -> Item? {
    numbers[key]?.last.flatMap { entries[$0]?.item }
  }

  /// Removes and returns the latest result for a key.
  package mutating func take(_ key: Key) -> Item? {
    guard let number = numbers[key]?.last else { return nil }
    return remove(number)?.item
  }

  /// Adds a result for a revision, unless it alone weighs more than the limit. Evicts the oldest results to make room.
  package mutating func put(_ item: Item, for key: Key, at revision: Revision, weight: Int) {
    guard weight <= weightLimit else { return }
    entries[next] = Entry(key: key, item: item, revision: revision, weight: weight)
    numbers[key, default: []].append(next)
    self.weight += weight
    next += 1
    while self.weight > weightLimit { removeOldest() }
  }

  /// Evicts results of revisions before `revision`, up to the first one that is not; an older result that was added
  /// after a younger one stays as long as the younger one does.
  package mutating func forget(before revision: Revision) {
    while let entry = oldestEntry(), entry.revision < revision { removeOldest() }
  }

  private mutating func oldestEntry() -> Entry? {
    while oldest < next {
      if let entry = entries[oldest] { return entry }
      oldest += 1
    }
    return nil
  }

  private mutating func removeOldest() {
    guard oldestEntry() != nil else { return }
    remove(oldest)
  }

  @discardableResult
  private mutating func remove(_ number: UInt64) -> Entry? {
    guard let entry = entries.removeValue(forKey: number) else { return nil }
    weight -= entry.weight
    numbers[entry.key]?.removeAll { $0 == number }
    if numbers[entry.key]?.isEmpty == true { numbers[entry.key] = nil }
    return entry
  }
}

/// A cache of the sorted references of each entity's objects, valid until an object is inserted or deleted: sorting
/// them for each fetch would cost the extent's length every time. Holds one list for each entity that was fetched.
package final class ExtentCache: Sendable {
  private struct Entry: Sendable {
    let version: UInt64
    let references: [Reference]
  }

  private let entries = Locked<[Int: Entry]>([:])

  /// Creates an empty cache.
  package init() {}

  /// Returns the same as `state.references(of: entity)`.
  package func references(of entity: Entity, in state: ModelState) -> [Reference] {
    let version = state.extentVersion(of: entity)
    if let entry = entries.withLock({ $0[entity.index] }), entry.version == version { return entry.references }
    let references = state.references(of: entity)
    entries.withLock { entries in
      // A reader of a later state may have stored its list first.
      if entries[entity.index]?.version ?? 0 <= version {
        entries[entity.index] = Entry(version: version, references: references)
      }
    }
    return references
  }
}
