import KeyValueModel

/// Finds the queries that a commit may touch without looking at the others.
///
/// A query whose filter demands a value of a key, like `state == 'TX'`, is found under that value, and one that bounds
/// a key, like `salary > 1000`, under the bound: a commit of objects with other values does not reach it, however many
/// such queries there are. In addition, each query is found only under the keys that it reads.
struct QueryRoutes {
  /// A key of an entity's objects and the value that it must have.
  private struct Demand: Hashable {
    let key: Int
    let value: Value
  }

  /// A key of an entity's objects that is bounded on one side.
  private struct BoundKey: Hashable {
    let key: Int
    let side: KeyBound.Side
  }

  /// The way in which a query of one entity's objects is found. Each query has exactly one.
  private enum Way {
    case demand(Demand)
    case bound(BoundKey, Value)
    case keys
  }

  /// The queries of one entity's objects, subclasses not included.
  private struct Table {
    /// The queries that demand a value, by one demanded value and by each key that they read.
    var demanding: [Demand: [Int: Set<Int>]] = [:]
    /// The number of queries that demand some value of a key.
    var demandedKeys: [Int: Int] = [:]
    /// The queries that bound a key, by each key that they read and by one bounded key.
    var bounded: [Int: [BoundKey: BoundedQueries]] = [:]
    /// The other queries, by each key that they read.
    var byKey: [Int: Set<Int>] = [:]
    /// All other queries.
    var undemanding: Set<Int> = []

    var isEmpty: Bool { demanding.isEmpty && bounded.isEmpty && undemanding.isEmpty }
  }

  /// A key of the objects of one entity, subclasses not included.
  private struct EntityKey: Hashable {
    let entity: Int
    let key: Int
  }

  private var tables: [Int: Table] = [:]
  /// The queries that read objects other than their rows.
  private var far: [EntityKey: Set<Int>] = [:]

  /// The number of entities and keys that lead to some query. For tests.
  var count: Int { tables.count + far.count }

  private static func farKeys(of reach: QueryReach) -> [EntityKey] {
    reach.far.ofEntity.flatMap { entity, keys in keys.map { EntityKey(entity: entity, key: $0) } }
  }

  private static func way(to query: Query) -> Way {
    if let (key, value) = query.equalities.first { return .demand(Demand(key: key, value: value)) }
    if let bound = query.filter?.bounds.first { return .bound(BoundKey(key: bound.key, side: bound.side), bound.value) }
    return .keys
  }

  mutating func add(_ number: Int, _ query: Query, _ reach: QueryReach) {
    for key in Self.farKeys(of: reach) { far[key, default: []].insert(number) }
    for (entity, own) in reach.own {
      var table = tables.removeValue(forKey: entity) ?? Table()
      switch Self.way(to: query) {
      case .demand(let demand):
        for key in own.keys { table.demanding[demand, default: [:]][key, default: []].insert(number) }
        table.demandedKeys[demand.key, default: 0] += 1
      case .bound(let bound, let value):
        for key in own.keys {
          table.bounded[key, default: [:]][bound, default: BoundedQueries()].insert(number, at: value)
        }
      case .keys:
        for key in own.keys { table.byKey[key, default: []].insert(number) }
        table.undemanding.insert(number)
      }
      tables[entity] = table
    }
  }

  mutating func remove(_ number: Int, _ query: Query, _ reach: QueryReach) {
    for key in Self.farKeys(of: reach) { far.remove(number, from: key) }
    for (entity, own) in reach.own {
      guard var table = tables.removeValue(forKey: entity) else { continue }
      switch Self.way(to: query) {
      case .demand(let demand):
        for key in own.keys { table.demanding[demand]?.remove(number, from: key) }
        if table.demanding[demand]?.isEmpty == true { table.demanding[demand] = nil }
        if let count = table.demandedKeys[demand.key] { table.demandedKeys[demand.key] = count > 1 ? count - 1 : nil }
      case .bound(let bound, let value):
        for key in own.keys {
          table.bounded[key]?[bound]?.remove(number, at: value)
          if table.bounded[key]?[bound]?.isEmpty == true { table.bounded[key]?[bound] = nil }
          if table.bounded[key]?.isEmpty == true { table.bounded[key] = nil }
        }
      case .keys:
        for key in own.keys { table.byKey.remove(number, from: key) }
        table.undemanding.remove(number)
      }
      if !table.isEmpty { tables[entity] = table }
    }
  }

  /// Calls `found` with each query that may have had, or may now have, an object among its rows, given the keys of it
  /// that were set; with some queries more than once. `before` and `after` are the object around the commit, nil if it
  /// did or does not exist.
  func queries(
    of entity: Entity, set keys: Set<Int>, before: ObjectRecord?, after: ObjectRecord?, found: (Int) -> Void
  ) {
    guard let table = tables[entity.index] else { return }
    let isReplaced = before == nil || after == nil
    func values(of key: Int) -> [Value] {
      guard let storage = entity.keys[key].storage else { return [] }
      return [before?.values[storage], after?.values[storage]].compactMap { $0 }
    }
    for demanded in table.demandedKeys.keys {
      for value in Set(values(of: demanded)) {
        guard let queries = table.demanding[Demand(key: demanded, value: value)] else { continue }
        // A query that demands a value of a key reads the key.
        for key in isReplaced ? [demanded] : keys { queries[key]?.forEach(found) }
      }
    }
    for key in isReplaced ? Set(table.bounded.keys) : keys {
      for (bound, queries) in table.bounded[key] ?? [:] where !isReplaced || bound.key == key {
        queries.allowing(values(of: bound.key), on: bound.side, found)
      }
    }
    if isReplaced {
      table.undemanding.forEach(found)
    } else {
      for key in keys { table.byKey[key]?.forEach(found) }
    }
  }

  /// Returns the queries that may read a key of an object that is not one of their rows.
  func queries(throughKey key: Int, of entity: Entity) -> Set<Int> {
    far[EntityKey(entity: entity.index, key: key)] ?? []
  }
}

/// Queries that bound one key on one side, in the order of their bounds.
private struct BoundedQueries {
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

  /// Calls `found` with each query whose bound allows one of the values; all bounds allow null. O(log n) and the number
  /// of queries found.
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

  /// Returns the number of bounds that precede a value.
  private func count(below value: Value) -> Int {
    entries.sortedCount { ValueOrder.plain.precedes($0.bound, value) }
  }
}

extension Array {
  /// Returns the number of elements before a position of a sorted array: `precedes` is true for these and false for all
  /// behind them. O(log n).
  func sortedCount(preceding precedes: (Element) -> Bool) -> Int {
    var low = 0
    var high = count
    while low < high {
      let middle = (low + high) / 2
      if precedes(self[middle]) { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
