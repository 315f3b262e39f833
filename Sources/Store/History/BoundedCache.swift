package import KeyValueModel
import Support

/// Results of a short life that save the next client the same work, each of a revision and a weight. Bounded by the
/// weight of all; the oldest make room.
///
/// A result that is shared as it is, is looked up. One that its user changes is taken out and put back afterwards: so
/// it has one owner at a time, and one key has as many results as were in use at once.
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
  /// No entry has a smaller number.
  private var oldest: UInt64 = 0
  private var next: UInt64 = 0
  /// What all that is kept weighs.
  package private(set) var weight = 0

  /// An empty cache for so much.
  package init(weightLimit: Int) {
    self.weightLimit = weightLimit
  }

  /// How many results are kept.
  package var count: Int { entries.count }

  /// The latest result of a key; it stays.
  package func item(for key: Key) -> Item? {
    numbers[key]?.last.flatMap { entries[$0]?.item }
  }

  /// The latest result of a key; it is kept no longer.
  package mutating func take(_ key: Key) -> Item? {
    guard let number = numbers[key]?.last else { return nil }
    return remove(number)?.item
  }

  /// Keeps a result, which is of a revision, unless it alone weighs more than all may.
  package mutating func put(_ item: Item, for key: Key, at revision: Revision, weight: Int) {
    guard weight <= weightLimit else { return }
    entries[next] = Entry(key: key, item: item, revision: revision, weight: weight)
    numbers[key, default: []].append(next)
    self.weight += weight
    next += 1
    while self.weight > weightLimit { removeOldest() }
  }

  /// Keeps nothing of revisions before this one any longer; what younger results came before is kept with them.
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

/// The references of each entity's objects in order, kept until an object is made or deleted: sorting them anew for
/// each fetch would cost the extent's length every time. Holds one list for each entity that was fetched.
package final class ExtentCache: Sendable {
  private struct Entry: Sendable {
    let version: UInt64
    let references: [Reference]
  }

  private let entries = Locked<[Int: Entry]>([:])

  /// A cache of nothing.
  package init() {}

  /// The same as `state.references(of: entity)`.
  package func references(of entity: Entity, in state: ModelState) -> [Reference] {
    let version = state.extentVersion(of: entity)
    if let entry = entries.withLock({ $0[entity.index] }), entry.version == version { return entry.references }
    let references = state.references(of: entity)
    entries.withLock { entries in
      // A reader of a later state may have been quicker.
      if entries[entity.index]?.version ?? 0 <= version {
        entries[entity.index] = Entry(version: version, references: references)
      }
    }
    return references
  }
}
