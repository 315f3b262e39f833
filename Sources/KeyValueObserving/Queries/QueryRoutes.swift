internal import KeyValueModel

/// Finds the queries that a commit may touch without looking at the others.
///
/// A query whose filter demands a value of a key, as `state == 'TX'` does, is found under that value: a commit of
/// objects with other values does not meet it, however many such queries there are. Others are found under the keys
/// that they read.
struct QueryRoutes {
  /// A key of an entity's objects and the value that it must have.
  private struct Demand: Hashable {
    let key: Int
    let value: Value
  }

  /// The queries of one entity's objects, subclasses not included.
  private struct Table {
    /// Those that demand a value, by one that they demand.
    var demanding: [Demand: Set<Int>] = [:]
    /// How many queries demand some value of a key.
    var demandedKeys: [Int: Int] = [:]
    /// The others, by each key that they read.
    var byKey: [Int: Set<Int>] = [:]
    /// The others, all of them.
    var undemanding: Set<Int> = []
  }

  private var tables: [Int: Table] = [:]
  /// The queries that read objects other than their rows.
  private var far: [QueryReach.EntityKey: Set<Int>] = [:]

  /// How many entities and keys lead to some query. For tests.
  var count: Int { tables.count + far.count }

  mutating func add(_ number: Int, _ query: Query, _ reach: QueryReach) {
    for key in reach.far { far[key, default: []].insert(number) }
    for (entity, own) in reach.own {
      var table = tables.removeValue(forKey: entity) ?? Table()
      if let (key, value) = query.equalities.first {
        table.demanding[Demand(key: key, value: value), default: []].insert(number)
        table.demandedKeys[key, default: 0] += 1
      } else {
        for key in own.keys { table.byKey[key, default: []].insert(number) }
        table.undemanding.insert(number)
      }
      tables[entity] = table
    }
  }

  mutating func remove(_ number: Int, _ query: Query, _ reach: QueryReach) {
    for key in reach.far { Self.remove(number, from: &far, key) }
    for (entity, own) in reach.own {
      guard var table = tables.removeValue(forKey: entity) else { continue }
      if let (key, value) = query.equalities.first {
        Self.remove(number, from: &table.demanding, Demand(key: key, value: value))
        if let count = table.demandedKeys[key] { table.demandedKeys[key] = count > 1 ? count - 1 : nil }
      } else {
        for key in own.keys { Self.remove(number, from: &table.byKey, key) }
        table.undemanding.remove(number)
      }
      if !table.demanding.isEmpty || !table.undemanding.isEmpty { tables[entity] = table }
    }
  }

  private static func remove<Key>(_ number: Int, from sets: inout [Key: Set<Int>], _ key: Key) {
    sets[key]?.remove(number)
    if sets[key]?.isEmpty == true { sets[key] = nil }
  }

  /// Calls `found` with each query that may have an object among its rows, or may get it, by reason of what was set of
  /// it; some more than once. `before` and `after` are the object around the commit, nil where it was or is not there.
  func queries(
    of entity: Entity, set keys: Set<Int>, before: ObjectRecord?, after: ObjectRecord?, found: (Int) -> Void
  ) {
    guard let table = tables[entity.index] else { return }
    for key in table.demandedKeys.keys {
      guard let storage = entity.keys[key].storage else { continue }
      let values = Set([before?.values[storage], after?.values[storage]].compactMap { $0 })
      for value in values { table.demanding[Demand(key: key, value: value)]?.forEach(found) }
    }
    if before == nil || after == nil {
      table.undemanding.forEach(found)
    } else {
      for key in keys { table.byKey[key]?.forEach(found) }
    }
  }

  /// The queries that may read a key of an object that is no row of theirs.
  func queries(throughKey key: Int, of entity: Entity) -> Set<Int> {
    far[QueryReach.EntityKey(entity: entity.index, key: key)] ?? []
  }
}
