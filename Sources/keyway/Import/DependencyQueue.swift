import KeyValueModel

/// Things that wait until objects are there. Each is given out once: when the last object that it waits for has come.
struct DependencyQueue<Name: Hashable & Sendable, Item: Sendable>: Sendable {
  private struct Entry: Sendable {
    let item: Item
    let weight: Int
    var missing: Set<Reference>
  }

  private var entries: [Name: Entry] = [:]
  /// By what they wait for, in the order in which they came; may name what has left.
  private var names: [Reference: [Name]] = [:]
  /// The sum of what everything weighs that waits.
  private(set) var weight = 0

  var isEmpty: Bool { entries.isEmpty }

  /// Everything that waits, in no order.
  var items: some Sequence<Item> { entries.values.lazy.map(\.item) }

  func item(_ name: Name) -> Item? { entries[name]?.item }

  /// What something still waits for.
  func missing(_ name: Name) -> Set<Reference> { entries[name]?.missing ?? [] }

  /// Whether an item waits for an object, which is therefore not there.
  func isAwaited(_ reference: Reference) -> Bool { names[reference] != nil }

  /// Lets something wait for at least one object, in place of what waited under the name.
  mutating func add(_ item: Item, named name: Name, weight: Int, missing: Set<Reference>) {
    remove(name)
    entries[name] = Entry(item: item, weight: weight, missing: missing)
    self.weight += weight
    for reference in missing { names[reference, default: []].append(name) }
  }

  /// Takes away what waits under a name.
  mutating func remove(_ name: Name) {
    guard let entry = entries.removeValue(forKey: name) else { return }
    weight -= entry.weight
  }

  /// An object is there: gives what waited for nothing else.
  mutating func arrive(_ reference: Reference) -> [Item] {
    var released: [Item] = []
    for name in names.removeValue(forKey: reference) ?? [] {
      guard entries[name]?.missing.remove(reference) != nil, let entry = entries[name], entry.missing.isEmpty else {
        continue
      }
      released.append(entry.item)
      remove(name)
    }
    return released
  }
}
