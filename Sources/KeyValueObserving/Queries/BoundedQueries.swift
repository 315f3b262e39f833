import KeyValueModel

/// Queries that bound one key on one side, in the order of their bounds.
struct BoundedQueries {
  private var entries: [(bound: Value, number: Int)] = []

  var isEmpty: Bool { entries.isEmpty }

  mutating func insert(_ number: Int, at bound: Value) {
    entries.insert((bound, number), at: count(below: bound))
  }

  mutating func remove(_ number: Int, at bound: Value) {
    var index = count(below: bound)
    while index < entries.count, entries[index].number != number { index += 1 }
    if index < entries.count { entries.remove(at: index) }
  }

  /// Calls `found` with each query whose bound allows one of the values, as all allow null. O(log n) and what is found.
  func allowing(_ values: [Value], on side: KeyBound.Side, _ found: (Int) -> Void) {
    guard !values.contains(where: \.isNull) else {
      for entry in entries { found(entry.number) }
      return
    }
    switch side {
    case .least:
      guard let greatest = values.max(by: ValueOrder.plain.precedes) else { return }
      for entry in entries {
        guard !ValueOrder.plain.precedes(greatest, entry.bound) else { return }
        found(entry.number)
      }
    case .greatest:
      guard let least = values.min(by: ValueOrder.plain.precedes) else { return }
      for entry in entries[count(below: least)...] { found(entry.number) }
    }
  }

  /// How many bounds precede a value.
  private func count(below value: Value) -> Int {
    entries.sortedCount { ValueOrder.plain.precedes($0.bound, value) }
  }
}
