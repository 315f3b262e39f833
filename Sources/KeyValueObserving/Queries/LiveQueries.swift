import DequeModule
package import KeyValueModel

/// The live queries and their observers. Each query is evaluated once for all its observers.
package struct LiveQueries: Sendable {
  private struct Entry: Sendable {
    var live: LiveQuery
    var observers: Set<QueryObserver> = []
    /// The clients that pay for it, each with the number of observers that it pays for.
    var payers: [QueryPayer: Int] = [:]
    /// The results before each of its latest contents, as long as a subscriber may not have received these yet.
    var recent: Deque<(revision: Revision, before: QueryResult)> = []
    /// The revision of the last content whose previous result was dropped; the revision of registration, if none was.
    var forgotten: Revision
    /// The revision of the last content; the revision of registration, if there was none.
    var lastTouch: Revision
  }

  private var entries: [Int: Entry] = [:]
  private var numbers: [Query: Int] = [:]
  private var watched: [ObserverID: [String?: Int]] = [:]
  private var routes = QueryRoutes()
  private var nextNumber = 0
  private var forgotten: [Entry] = []
  /// The contents whose previous results are kept, oldest first.
  private var recent: Deque<(revision: Revision, number: Int)> = []
  /// The revision of the last commit that was applied.
  private var revision: Revision

  /// The clients that pay for the queries of each observer, each with the number of its streams.
  private var payers: [ObserverID: [QueryPayer: Int]] = [:]
  private var holdings: [QueryPayer: QueryHolding] = [:]
  /// The maximum cost of one query for one commit.
  private let filterCost: Int
  /// The maximum cost of all queries for one commit.
  private let commitCost: Int
  /// The maximum number of previous results that are kept.
  private let recentLimit: Int

  /// Creates an empty collection of queries at a revision. `filterCost` is the maximum cost of one query for one
  /// commit, `commitCost` that of all queries for a commit of a single object. Costs are steps of filters, and some for
  /// each object and row.
  package init(filterCost: Int, recentLimit: Int, commitCost: Int = .max, revision: Revision = 0) {
    self.revision = revision
    self.filterCost = filterCost
    self.commitCost = commitCost
    self.recentLimit = recentLimit
  }

  private func entry(of query: Query) -> Entry? { numbers[query].flatMap { entries[$0] } }

  /// The number of different queries.
  package var count: Int { entries.count }

  /// The number of rows of all queries, including those outside of windows.
  package private(set) var rowCount = 0

  /// The number of observers.
  package var observerCount: Int { watched.values.reduce(0) { $0 + $1.count } }

  /// The number of entries kept for queries and their observers: 0 if there are no observers. For tests.
  var counts: Int { entries.count + numbers.count + watched.count + payers.count + holdings.count + routes.count }

  /// Returns the current rows of a query; nil if it has no observer.
  package func result(of query: Query) -> QueryResult? { entry(of: query)?.live.result }

  /// Returns the rows of a query as they were right before the commit of a revision; nil if that is no longer known.
  package func result(of query: Query, before revision: Revision) -> QueryResult? {
    guard let entry = entry(of: query), revision > entry.forgotten else { return nil }
    return entry.recent.first { $0.revision >= revision }?.before ?? entry.live.result
  }

  /// Returns the number of contents from a revision on, as far as it is known.
  package func contentCount(of query: Query, since revision: Revision) -> Int {
    entry(of: query)?.recent.count { $0.revision >= revision } ?? 0
  }

  /// Returns true if the rows of a query are known not to have changed after a revision.
  package func isUntouched(_ query: Query, since revision: Revision) -> Bool {
    entry(of: query).map { revision >= $0.lastTouch } ?? false
  }

  /// Returns the live query of a query; nil if it has no observer.
  package func live(_ query: Query) -> LiveQuery? { entry(of: query)?.live }

  /// Adds a query that had no observer, with its present rows and its first observer.
  package mutating func add(_ live: LiveQuery, observer: QueryObserver) {
    if numbers[live.query] == nil {
      let number = nextNumber
      nextNumber += 1
      numbers[live.query] = number
      entries[number] = Entry(live: live, forgotten: revision, lastTouch: revision)
      routes.add(number, live.query, live.reach)
      rowCount += live.rowCount
    }
    watch(live.query, observer)
  }

  /// Adds an observer to a query that has others, in place of the query that it watched before. Returns false if the
  /// query has no observer.
  @discardableResult
  package mutating func watch(_ query: Query, _ observer: QueryObserver) -> Bool {
    guard let number = numbers[query] else { return false }
    if let former = watched[observer.id]?[observer.cell], former != number { remove(observer) }
    guard entries[number]?.observers.insert(observer).inserted == true else { return true }
    for payer in (payers[observer.id] ?? [:]).keys { pay(1, for: number, by: payer) }
    watched[observer.id, default: [:]][observer.cell] = number
    return true
  }

  /// Removes an observer from the query that it watches, if any. A query without observers is removed.
  package mutating func remove(_ observer: QueryObserver) {
    guard let number = watched[observer.id]?.removeValue(forKey: observer.cell) else { return }
    if watched[observer.id]?.isEmpty == true { watched[observer.id] = nil }
    entries[number]?.observers.remove(observer)
    for payer in (payers[observer.id] ?? [:]).keys { pay(-1, for: number, by: payer) }
    if entries[number]?.observers.isEmpty == true { forget(number) }
  }

  /// Removes an observer from all queries that it watches.
  package mutating func remove(_ observer: ObserverID) {
    for cell in (watched[observer] ?? [:]).keys { remove(QueryObserver(id: observer, cell: cell)) }
  }

  /// Charges a client for the queries that an observer watches: once for each stream that the client has of it.
  package mutating func charge(_ observer: ObserverID, to payer: QueryPayer) {
    payers[observer, default: [:]][payer, default: 0] += 1
    guard payers[observer]?[payer] == 1 else { return }
    for number in (watched[observer] ?? [:]).values { pay(1, for: number, by: payer) }
  }

  /// Reverses one such charge.
  package mutating func discharge(_ observer: ObserverID, of payer: QueryPayer) {
    guard let count = payers[observer]?[payer] else { return }
    payers[observer]?[payer] = count > 1 ? count - 1 : nil
    if count == 1 { for number in (watched[observer] ?? [:]).values { pay(-1, for: number, by: payer) } }
    if payers[observer]?.isEmpty == true { payers[observer] = nil }
  }

  private func payers(of number: Int) -> [QueryPayer] {
    guard let payers = entries[number]?.payers, !payers.isEmpty else { return [.unknown] }
    return Array(payers.keys)
  }

  /// Returns the number of queries and rows that a client pays for. A query that several clients watch counts in full
  /// for each of them.
  package func holding(of payer: QueryPayer) -> QueryHolding { holdings[payer] ?? QueryHolding() }

  /// Charges a client for one observer more, or less, of a query.
  private mutating func pay(_ change: Int, for number: Int, by payer: QueryPayer) {
    guard let rows = entries[number]?.live.rowCount else { return }
    let before = entries[number]?.payers[payer] ?? 0
    let after = before + change
    entries[number]?.payers[payer] = after > 0 ? after : nil
    guard (before > 0) != (after > 0) else { return }
    holdings[payer, default: QueryHolding()].add(queries: change, rows: change * rows)
    if holdings[payer]?.queries == 0 { holdings[payer] = nil }
  }

  /// Counts rows that a query has gained, in total and for the clients that pay for it.
  private mutating func countRows(_ change: Int, of number: Int) {
    guard change != 0 else { return }
    rowCount += change
    for payer in (entries[number]?.payers ?? [:]).keys { holdings[payer]?.add(queries: 0, rows: change) }
  }

  private mutating func forget(_ number: Int) {
    guard let entry = entries.removeValue(forKey: number) else { return }
    numbers[entry.live.query] = nil
    rowCount -= entry.live.rowCount
    routes.remove(number, entry.live.query, entry.live.reach)
    forgotten.append(entry)
  }

  /// Takes the memory of the queries that were removed since the last call; nil if there were none. Freeing it may take
  /// as long as evaluating the queries, so the caller decides which thread does that.
  package mutating func takeForgotten() -> (any Sendable)? {
    guard !forgotten.isEmpty else { return nil }
    defer { forgotten = [] }
    return forgotten
  }

  /// Drops the results before contents up to a revision: every subscriber has received these contents, or is known to
  /// lag.
  package mutating func settle(upTo revision: Revision) {
    while let oldest = recent.first, oldest.revision <= revision || recent.count > recentLimit {
      recent.removeFirst()
      if entries[oldest.number]?.recent.first?.revision == oldest.revision {
        entries[oldest.number]?.recent.removeFirst()
        entries[oldest.number]?.forgotten = oldest.revision
      }
    }
  }

  // MARK: Notifying

  /// Applies consecutive commits to the queries. Each event is passed to `receive`, those of one commit before those of
  /// the next. `present` is the state after the last of `commits`, `past` that before the first, if the caller has it.
  /// Returns the number of steps that each commit took.
  @discardableResult
  package mutating func notify(
    _ commits: some BidirectionalCollection<Commit>, of present: ModelState, from past: PastState? = nil,
    receive: (QueryEvent) -> Void
  ) -> [Int] {
    revision = commits.last?.revision ?? revision
    var steps = Array(repeating: 0, count: commits.count)
    guard !entries.isEmpty, !commits.isEmpty else { return steps }
    // The state after the last commit is given; those in between are derived from it.
    var state = commits.count > 1 ? past ?? PastState(before: commits, of: present) : nil
    for (place, commit) in commits.enumerated() {
      state?.apply(commit)
      if let state, place != commits.count - 1 {
        steps[place] = notify(commit, after: state, receive: receive)
      } else {
        steps[place] = notify(commit, after: present, receive: receive)
      }
    }
    return steps
  }

  /// Notifies the watchers of a commit. Returns the cost.
  private mutating func notify(
    _ commit: Commit, after state: some ObjectReader, receive: (QueryEvent) -> Void
  ) -> Int {
    let touches = touches(commit, after: state)
    guard !touches.isEmpty else { return 0 }
    let created = Set(commit.before.lazy.filter { $0.record == nil }.map(\.object))
    let forFurtherObjects = max(0, commit.before.count - 1) * Self.costPerObject
    // The limit may be `.max`.
    let whole = min(commitCost, .max - forFurtherObjects) + forFurtherObjects
    var budget = whole
    /// Evaluates one query. Returns the cost.
    func evaluate(_ number: Int) -> Int {
      guard let touch = touches[number], entries[number] != nil else { return 0 }
      let limit = min(filterCost, budget)
      var cost = limit
      do throws(ModelError) {
        if let content = try apply(touch, to: number, commit, created, after: state, cost: &cost) {
          receive(event(number, commit, .content(content)))
        }
      } catch {
        fail(number, limit < filterCost ? Self.commitCostExceeded : error, commit, receive: receive)
      }
      budget -= limit - cost
      return limit - cost
    }
    var numbers = touches.keys.sorted()[...]
    // While much of the budget is left, it does not matter which client pays for a query.
    while budget > commitCost / 2, let number = numbers.popFirst() { _ = evaluate(number) }
    guard !numbers.isEmpty else { return whole - budget }
    var turns = QueryTurns(numbers, budget: budget) { self.payers(of: $0) }
    while let number = turns.next() {
      guard budget > 0 else {
        fail(number, Self.commitCostExceeded, commit, receive: receive)
        turns.spend(1, by: [])
        continue
      }
      let payers = payers(of: number)
      turns.spend(evaluate(number), by: payers)
    }
    return whole - budget
  }

  /// The amount that each object of a commit beyond the first adds to the maximum cost of all queries: a commit of many
  /// objects takes long even without queries.
  private static let costPerObject = 100

  private static let commitCostExceeded = ModelError(
    .malformedFilter, "the live queries of the client cost more for one commit than its share of queries.commitSteps")

  /// Ends a query that cannot be evaluated within its limits.
  private mutating func fail(_ number: Int, _ error: ModelError, _ commit: Commit, receive: (QueryEvent) -> Void) {
    guard entries[number] != nil else { return }
    receive(event(number, commit, .failed(error)))
    for observer in entries[number]?.observers ?? [] { remove(observer) }
  }

  private func event(_ number: Int, _ commit: Commit, _ outcome: QueryEvent.Outcome) -> QueryEvent {
    guard let entry = entries[number] else { preconditionFailure("a touched query does not exist") }
    return QueryEvent(
      query: entry.live.query, revision: commit.revision, observers: entry.observers, outcome: outcome)
  }

  private mutating func apply(
    _ touch: QueryTouch, to number: Int, _ commit: Commit, _ created: Set<Reference>, after state: some ObjectReader,
    cost: inout Int
  ) throws(ModelError) -> QueryContent? {
    guard let before = entries[number]?.live.result else { return nil }
    let rowsBefore = entries[number]?.live.rowCount ?? 0
    defer { countRows((entries[number]?.live.rowCount ?? 0) - rowsBefore, of: number) }
    let changes = try entries[number]?.live.apply(touch, in: state, cost: &cost)
    guard let (rows, sections) = changes, let after = entries[number]?.live.result else { return nil }
    if rows.isEmpty, sections.isEmpty, after.isSummedUpLike(before) { return nil }
    let content = QueryContent(
      from: before, to: after, revision: commit.revision, writer: commit.writer,
      changes: rows.map { $0.explained(in: state, isNew: created.contains) },
      sectionChanges: sections)
    entries[number]?.lastTouch = commit.revision
    entries[number]?.recent.append((commit.revision, before))
    recent.append((commit.revision, number))
    if recent.count > recentLimit { settle(upTo: 0) }
    return content
  }

  // MARK: What a commit touches

  private func touches(_ commit: Commit, after state: some ObjectReader) -> [Int: QueryTouch] {
    var touches: [Int: QueryTouch] = [:]
    var keysByObject: [Reference: Set<Int>] = [:]
    commit.forEachChange { keysByObject[$0.object, default: []].insert($0.key) }
    for (object, before) in commit.before {
      let after = state.record(object)
      guard let entity = (after ?? before)?.entity else { continue }
      routes.queries(of: entity, set: keysByObject[object] ?? [], before: before, after: after) { number in
        touches[number, default: QueryTouch()].objects.insert(object)
      }
    }
    appendChanges(commit, after: state, to: &touches)
    return touches
  }

  /// Adds what was set to the touches of queries that read beyond their rows.
  private func appendChanges(_ commit: Commit, after state: some ObjectReader, to touches: inout [Int: QueryTouch]) {
    let entities = Dictionary(
      commit.before.compactMap { object, before in (state.record(object) ?? before).map { (object, $0.entity) } },
      uniquingKeysWith: { first, _ in first })
    let reading = touches.filter { entries[$0.key]?.live.reach.isFar == true }
    commit.forEachChange { change in
      guard let entity = entities[change.object] else { return }
      var numbers = routes.queries(throughKey: change.key, of: entity)
      for (number, touch) in reading where touch.objects.contains(change.object) { numbers.insert(number) }
      for number in numbers { touches[number, default: QueryTouch()].changes.append(change) }
    }
  }
}

/// The effect of one commit on one live query, for all its observers.
package struct QueryEvent: Sendable {
  /// The outcome of the commit for the query.
  package enum Outcome: Sendable {
    /// The rows have changed in this way.
    case content(QueryContent)
    /// The query costs more than it may. This is its last event.
    case failed(ModelError)
  }

  /// The query.
  package let query: Query
  /// The commit's revision.
  package let revision: Revision
  /// The observers, with one element for each cell that shows the query.
  package let observers: Set<QueryObserver>
  /// The outcome of the commit for the query.
  package let outcome: Outcome
}

/// An observer of a live query: an observer as a whole, or one of its cells.
package struct QueryObserver: Hashable, Sendable {
  /// The observer that is notified.
  package let id: ObserverID
  /// The cell that shows the query, if the observer has cells.
  package let cell: String?

  /// Creates an observer as a whole or, with a name, one of its cells.
  package init(id: ObserverID, cell: String?) {
    self.id = id
    self.cell = cell
  }
}
