import KeyValueModel
import TestKit

@testable import KeyValueObserving

/// A model, its live queries and their expected results, side by side.
struct QueryRace {
  let queries: RandomQueries
  var traffic: RandomTraffic
  var model: Model
  var live = LiveQueries(filterCost: .max, recentLimit: 6)
  var watchers: [QueryObserver: Query] = [:]
  /// The result of each watched query, at each revision since it was first watched.
  var lists: [Query: [Revision: NaiveList]] = [:]
  var clients: [Query: ClientList] = [:]
  /// The state at each revision.
  var states: [ModelState]
  var trail: [String] = []

  init(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    let schema = OracleSchema.random(modes: ["always", "changed", "manual"], &random)
    let compiled = try Schema(yaml: schema.yaml)
    queries = RandomQueries(schema: schema, compiled: compiled)
    traffic = RandomTraffic(schema: schema, random: random, idCount: 7)
    model = Model(schema: compiled)
    states = [model.state]
  }

  var schema: Schema { queries.compiled }

  // MARK: Traffic

  /// The present objects, from which a transaction's operations are chosen.
  private var world: OracleWorld {
    var objects: [String: [String: Value]] = [:]
    for entity in schema.entities where entity.parent == nil {
      for reference in model.state.references(of: entity) {
        guard let record = model.state.record(reference) else { continue }
        var values: [String: Value] = [:]
        for key in record.entity.keys {
          guard let storage = key.storage else { continue }
          values[key.name] = record.values[storage].elements.map(Value.array) ?? record.values[storage]
        }
        objects[reference.text] = values
      }
    }
    var world = OracleWorld(schema: queries.schema)
    world.objects = objects
    return world
  }

  /// Commits a random transaction, after further attempts if some are refused.
  mutating func commit() throws -> Commit {
    for _ in 0..<200 {
      let operations = traffic.transaction(world)
      guard let commit = try? model.commit(Transaction(operations, writer: "w")) else { continue }
      trail.append("\(commit.revision): \(operations)".replacing("KeyValueModel.", with: ""))
      states.append(model.state)
      return commit
    }
    throw Difference(text: "nothing can be committed")
  }

  // MARK: Telling

  mutating func step() throws {
    if Int.random(in: 0..<3, using: &traffic.random) == 0 { try changeWatchers() }
    let first = model.revision + 1
    var commits: [Commit] = []
    for _ in 0..<(Bool.random(using: &traffic.random) ? 1 : Int.random(in: 2...5, using: &traffic.random)) {
      commits.append(try commit())
    }
    var events: [QueryEvent] = []
    live.notify(commits, of: model.state) { events.append($0) }
    try agree(events.map(\.revision) == events.map(\.revision).sorted(), "told in another order")
    for (query, known) in lists {
      var known = known
      for revision in first...model.revision {
        guard let before = known[revision - 1] else { throw Difference(text: "no list of \(revision - 1)") }
        let after = try NaiveList(query, in: states[Int(revision)])
        known[revision] = after
        let told = events.filter { $0.query == query && $0.revision == revision }
        try compare(told, before, after, revision)
      }
      lists[query] = known
      try checkPresent(query)
    }
    try agree(events.allSatisfy { lists[$0.query] != nil }, "a query is told that nobody watches")
    try checkPast()
    if Int.random(in: 0..<6, using: &traffic.random) == 0 {
      live.settle(upTo: Revision.random(in: 0...model.revision, using: &traffic.random))
    }
  }

  private mutating func compare(
    _ events: [QueryEvent], _ before: NaiveList, _ after: NaiveList, _ revision: Revision
  ) throws {
    let query = after.query
    let name = "revision \(revision), \(query.words)"
    guard !before.looksLike(after) else { return try agree(events.isEmpty, "\(name)\ntold of nothing") }
    guard events.count == 1, case .content(let content)? = events.first?.outcome else {
      throw Difference(text: "\(name)\ntold \(events.count) times")
    }
    try agree(
      events[0].observers == Set(watchers.filter { $0.value == query }.keys), "\(name)\nothers are told")
    try agree(content.revision == revision && content.writer == "w", "\(name)\nanother commit")
    let former = states[Int(revision) - 1]
    do {
      try ContentCheck(before: before, after: after, schema: schema)
        .check(content, in: states[Int(revision)]) { former.record($0) == nil }
      try clients[query]?.apply(content, of: query)
      try agree(clients[query]?.shows(after) == true, "the list is another")
    } catch let difference as Difference {
      throw Difference(
        text: """
          \(name)
          \(difference.text)
          told \(lines(content))
          from \(before.rows.map { "\($0.reference) \($0.section ?? "") \($0.sorts.map(\.json))" })
          to   \(after.rows.map { "\($0.reference) \($0.section ?? "") \($0.sorts.map(\.json))" })
          """)
    }
  }

  /// Checks that the result is that of a query that begins now, and that it follows as many objects.
  private func checkPresent(_ query: Query) throws {
    guard let result = live.result(of: query), let list = lists[query]?[model.revision] else {
      throw Difference(text: "\(query.words) has no result")
    }
    try agree(ClientList(result).shows(list), "\(query.words)\nthe result is another than a fetch")
    try agree(result.failed == list.failed, "\(query.words)\n\(result.failed) fail, not \(list.failed)")
    let now = PastState(before: EmptyCollection(), of: model.state)
    var cost = Int.max
    let fresh = try LiveQuery(query, in: now, cost: &cost)
    let count = live.live(query)?.linkCount ?? -1
    // An index of dates may have left out objects that need not be followed.
    let isExact = query.filter?.equalities.count ?? 0 == query.equalities.count
    let isFollowed = isExact ? count == fresh.linkCount : count <= fresh.linkCount
    try agree(isFollowed, "\(query.words)\n\(count) links, not \(fresh.linkCount) at \(model.revision)")
  }

  /// Checks that the past results that are still available are correct.
  private mutating func checkPast() throws {
    let revision = Revision.random(in: 1...model.revision, using: &traffic.random)
    for (query, known) in lists {
      guard let list = known[revision - 1], let result = live.result(of: query, before: revision) else { continue }
      try agree(
        ClientList(result).shows(list), "\(query.words)\nit was another before \(revision), at \(model.revision)")
    }
  }

  // MARK: Watchers

  mutating func changeWatchers() throws {
    let observer = ObserverID(UInt64.random(in: 1...4, using: &traffic.random))
    let cell = ["a", "b", nil].randomElement(using: &traffic.random) ?? nil
    switch Int.random(in: 0..<8, using: &traffic.random) {
    case 0:
      live.remove(observer)
      watchers = watchers.filter { $0.key.id != observer }
    case 1:
      live.remove(QueryObserver(id: observer, cell: cell))
      watchers[QueryObserver(id: observer, cell: cell)] = nil
    default: try watch(QueryObserver(id: observer, cell: cell))
    }
    lists = lists.filter { watchers.values.contains($0.key) }
    clients = clients.filter { lists[$0.key] != nil }
    try checkCount()
  }

  private mutating func watch(_ watcher: QueryObserver) throws {
    let known = lists.keys.sorted { "\($0.words)" < "\($1.words)" }
    if Int.random(in: 0..<4, using: &traffic.random) == 0, let query = known.randomElement(using: &traffic.random) {
      try agree(live.watch(query, watcher), "a known query cannot be watched")
      watchers[watcher] = query
      return
    }
    let query = try queries.query(&traffic.random)
    trail.append("\(watcher) watches \(query.words)")
    watchers[watcher] = query
    let fresh = try LiveQuery(query, in: model.state, costLimit: .max)
    live.add(fresh, observer: watcher)
    guard lists[query] == nil else { return }
    lists[query] = [model.revision: try NaiveList(query, in: model.state)]
    clients[query] = ClientList(fresh.result)
    try checkPresent(query)
  }

  func checkCount() throws {
    try agree(live.count == lists.count, "\(live.count) queries, not \(lists.count)")
    try agree(live.observerCount == watchers.count, "\(live.observerCount) watchers, not \(watchers.count)")
    try agree(!watchers.isEmpty || live.counts == 0, "\(live.counts) things are left")
  }

  /// Removes all watchers, and checks that nothing is left.
  mutating func finish() throws {
    for watcher in watchers.keys.shuffled(using: &traffic.random) { live.remove(watcher) }
    watchers = [:]
    lists = [:]
    try checkCount()
  }
}
