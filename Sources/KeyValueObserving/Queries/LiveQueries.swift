import DequeModule
package import KeyValueModel

/// The live queries and their observers. However many observe one, it is evaluated once.
package struct LiveQueries: Sendable {
  private struct Entry: Sendable {
    var live: LiveQuery
    var observers: Set<QueryObserver> = []
    /// The clients that pay for it, each with the number of observers that it pays for.
    var payers: [QueryPayer: Int] = [:]
    /// What it was before each of its last contents, as far as a subscriber may not have received these yet.
    var recent: Deque<(revision: Revision, before: QueryResult)> = []
    /// The last content of which that was forgotten; the revision of registration, while none is.
    var forgotten: Revision
    /// The last content; the revision of registration, while there was none.
    var lastTouch: Revision
  }

  private var entries: [Int: Entry] = [:]
  private var numbers: [Query: Int] = [:]
  private var watched: [ObserverID: [String?: Int]] = [:]
  private var routes = QueryRoutes()
  private var nextNumber = 0
  private var forgotten: [Entry] = []
  /// The contents whose results before are kept, oldest first.
  private var recent: Deque<(revision: Revision, number: Int)> = []
  /// The last commit that was taken in.
  private var revision: Revision

  /// Who pays for what an observer watches, and how often: once for each of its streams.
  private var payers: [ObserverID: [QueryPayer: Int]] = [:]
  private var holdings: [QueryPayer: QueryHolding] = [:]
  /// The most that one query may cost for one commit.
  private let filterCost: Int
  /// The most that all queries may cost for one commit.
  private let commitCost: Int
  /// The most results before a content that are kept.
  private let recentLimit: Int

  /// No queries yet, at a revision. `filterCost` is the most that one of them may cost for one commit, `commitCost`
  /// what all may cost for one of a single object: steps of filters, and some for each object and row.
  package init(filterCost: Int, recentLimit: Int, commitCost: Int = .max, revision: Revision = 0) {
    self.revision = revision
    self.filterCost = filterCost
    self.commitCost = commitCost
    self.recentLimit = recentLimit
  }

  private func entry(of query: Query) -> Entry? { numbers[query].flatMap { entries[$0] } }

  /// How many different queries there are.
  package var count: Int { entries.count }

  /// How many rows they have together, those outside of windows too.
  package private(set) var rowCount = 0

  /// How many observers there are.
  package var observerCount: Int { watched.values.reduce(0) { $0 + $1.count } }

  /// How many things are kept for queries and their observers: none where there are no observers. For tests.
  var counts: Int { entries.count + numbers.count + watched.count + payers.count + holdings.count + routes.count }

  /// The rows of a query as they are; nil where it has no observer.
  package func result(of query: Query) -> QueryResult? { entry(of: query)?.live.result }

  /// The rows of a query as they were right before what a revision did; nil where that is no longer known.
  package func result(of query: Query, before revision: Revision) -> QueryResult? {
    guard let entry = entry(of: query), revision > entry.forgotten else { return nil }
    return entry.recent.first { $0.revision >= revision }?.before ?? entry.live.result
  }

  /// How many contents there were from a revision on, as far as that is known.
  package func contentCount(of query: Query, since revision: Revision) -> Int {
    entry(of: query)?.recent.count { $0.revision >= revision } ?? 0
  }

  /// Whether nothing has become of a query's rows after a revision, as far as that is known.
  package func isUntouched(_ query: Query, since revision: Revision) -> Bool {
    entry(of: query).map { revision >= $0.lastTouch } ?? false
  }

  /// A query as it is; nil where it has no observer.
  package func live(_ query: Query) -> LiveQuery? { entry(of: query)?.live }

  /// Adds a query that had no observer, with its rows at the present, and its first observer.
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

  /// Has an observer watch a query that has others, in place of what it watched before; false where the query has none.
  @discardableResult
  package mutating func watch(_ query: Query, _ observer: QueryObserver) -> Bool {
    guard let number = numbers[query] else { return false }
    if let former = watched[observer.id]?[observer.cell], former != number { remove(observer) }
    guard entries[number]?.observers.insert(observer).inserted == true else { return true }
    for payer in (payers[observer.id] ?? [:]).keys { pay(1, for: number, by: payer) }
    watched[observer.id, default: [:]][observer.cell] = number
    return true
  }

  /// Ends what an observer watches, if anything. A query without observers is forgotten.
  package mutating func remove(_ observer: QueryObserver) {
    guard let number = watched[observer.id]?.removeValue(forKey: observer.cell) else { return }
    if watched[observer.id]?.isEmpty == true { watched[observer.id] = nil }
    entries[number]?.observers.remove(observer)
    for payer in (payers[observer.id] ?? [:]).keys { pay(-1, for: number, by: payer) }
    if entries[number]?.observers.isEmpty == true { forget(number) }
  }

  /// Ends all that an observer watches.
  package mutating func remove(_ observer: ObserverID) {
    for cell in (watched[observer] ?? [:]).keys { remove(QueryObserver(id: observer, cell: cell)) }
  }

  /// Has a client pay for what an observer watches; once more for each stream that the client has of it.
  package mutating func charge(_ observer: ObserverID, to payer: QueryPayer) {
    payers[observer, default: [:]][payer, default: 0] += 1
    guard payers[observer]?[payer] == 1 else { return }
    for number in (watched[observer] ?? [:]).values { pay(1, for: number, by: payer) }
  }

  /// Takes back one such charge.
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

  /// Returns what a client pays for. A query that several clients watch counts in full for each of them.
  package func holding(of payer: QueryPayer) -> QueryHolding { holdings[payer] ?? QueryHolding() }

  /// Has a client pay for one observer more, or less, of a query.
  private mutating func pay(_ change: Int, for number: Int, by payer: QueryPayer) {
    guard let rows = entries[number]?.live.rowCount else { return }
    let before = entries[number]?.payers[payer] ?? 0
    let after = before + change
    entries[number]?.payers[payer] = after > 0 ? after : nil
    guard (before > 0) != (after > 0) else { return }
    holdings[payer, default: QueryHolding()].add(queries: change, rows: change * rows)
    if holdings[payer]?.queries == 0 { holdings[payer] = nil }
  }

  /// Counts the rows that have come to a query, in all and for those who pay for it.
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

  /// What is left of the queries that have been forgotten since the last call, nil where there were none. To free it
  /// may take as long as to evaluate them, so that it is for the caller to say which thread does.
  package mutating func takeForgotten() -> (any Sendable)? {
    guard !forgotten.isEmpty else { return nil }
    defer { forgotten = [] }
    return forgotten
  }

  /// Forgets what the results were before contents up to a revision: every subscriber has received these, or is known
  /// to lag.
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

  /// What consecutive commits do to the queries, each given to `receive`, those of one commit before those of the next.
  /// `present` is the state after the last of `commits`, `past` that before the first, where the caller has it. Returns
  /// how many steps each commit took.
  @discardableResult
  package mutating func notify(
    _ commits: some BidirectionalCollection<Commit>, of present: ModelState, from past: PastState? = nil,
    receive: (QueryEvent) -> Void
  ) -> [Int] {
    revision = commits.last?.revision ?? revision
    var steps = Array(repeating: 0, count: commits.count)
    guard !entries.isEmpty, !commits.isEmpty else { return steps }
    // The state after the last commit is there; those between are seen from it.
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

  /// Notifies the watchers of a commit, and gives what that cost.
  private mutating func notify(
    _ commit: Commit, after state: some ObjectReader, receive: (QueryEvent) -> Void
  ) -> Int {
    let touches = touches(commit, after: state)
    guard !touches.isEmpty else { return 0 }
    let created = Set(commit.before.lazy.filter { $0.record == nil }.map(\.object))
    let forFurtherObjects = max(0, commit.before.count - 1) * Self.costPerObject
    // There may be no limit.
    let whole = min(commitCost, .max - forFurtherObjects) + forFurtherObjects
    var budget = whole
    /// Evaluates one query, and gives what that cost.
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
    // While there is plenty, it does not matter whose a query is.
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

  /// What each object of a commit adds to what all queries may cost for it: one of many objects takes long without any.
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
    guard let entry = entries[number] else { preconditionFailure("a query that is not there was touched") }
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

/// What one commit did to one live query, for all its observers.
package struct QueryEvent: Sendable {
  /// What happened.
  package enum Outcome: Sendable {
    /// This became of the rows.
    case content(QueryContent)
    /// The filter has come to cost more than it may: this is the last event of the query.
    case failed(ModelError)
  }

  /// The query.
  package let query: Query
  /// The commit's revision.
  package let revision: Revision
  /// The observers, each as often as it has cells that show the query.
  package let observers: Set<QueryObserver>
  /// What happened.
  package let outcome: Outcome
}

/// What observes a live query: an observer as a whole, or one of its cells.
package struct QueryObserver: Hashable, Sendable {
  /// The observer that is notified.
  package let id: ObserverID
  /// The cell that shows the query, where the observer has cells.
  package let cell: String?

  /// An observer, or with a name one of its cells.
  package init(id: ObserverID, cell: String?) {
    self.id = id
    self.cell = cell
  }
}
