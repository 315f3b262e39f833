package import KeyValueModel
package import KeyValueObserving
import Support

/// A live query that was evaluated while others wrote, and that is brought up to date when it is observed.
package struct PreparedQuery: Sendable {
  private static let observer = QueryObserver(id: ObserverID(0), cell: nil)

  private let query: Query
  /// The query as it was at `revision`; empty after a failure. Kept in a `LiveQueries`, because taking the query out to
  /// bring it up to date would copy its rows.
  private var queries: LiveQueries
  /// The revision that the query is up to date with.
  package private(set) var revision: Revision
  /// The published snapshot when the query was evaluated or last brought up to date.
  package private(set) var snapshot: Snapshot
  /// The result at the cursor that a client resumes from; nil if no client resumes.
  package let past: QueryResult?
  /// The changes to the result since it was evaluated.
  package private(set) var contents: [QueryContent] = []
  /// The error if the changes cannot be determined because the filter came to cost too much on the way; nil otherwise.
  package private(set) var failure: ModelError?

  fileprivate init(
    _ live: LiveQuery, at revision: Revision, _ snapshot: Snapshot, isPast: Bool = false, limits: StoreLimits
  ) {
    query = live.query
    queries = LiveQueries(filterCost: limits.queryFilterCost, recentLimit: 0)
    queries.add(live, observer: Self.observer)
    self.revision = revision
    self.snapshot = snapshot
    past = isPast ? live.result : nil
  }

  /// The current live query; nil after a failure.
  fileprivate var live: LiveQuery? { queries.live(query) }

  /// The number of rows, including those outside the window.
  package var rowCount: Int { queries.rowCount }

  /// The current rows.
  package var result: QueryResult { queries.result(of: query) ?? QueryResult(nothingOf: query) }

  /// Applies the commits that follow on `revision` and led to `snapshot`. `before` is the state before them, if it is
  /// known.
  mutating func bringUp(through commits: [Commit], to snapshot: Snapshot, from before: PastState? = nil) {
    guard let last = commits.last, failure == nil else { return }
    queries.notify(commits, of: snapshot.state, from: before) { event in
      switch event.outcome {
      case .content(let content): contents.append(content)
      case .failed(let error): failure = error
      }
    }
    revision = last.revision
    self.snapshot = snapshot
  }
}

extension Store {
  /// Evaluates queries that have no observer yet, without blocking other threads. Throws `malformed-filter` if they
  /// cost more than `request.steps` together, or if `isAbandoned` returns true because they are no longer wanted.
  package func prepare(
    _ queries: some Collection<Query>, _ isAbandoned: () -> Bool = { false }
  ) throws(ModelError) -> [Query: PreparedQuery] {
    guard !queries.isEmpty else { return [:] }
    let wanted = Set(queries)
    let (snapshot, unwatched) = withPublication { publication in
      (publication.snapshot, wanted.filter { publication.queries.result(of: $0) == nil })
    }
    var prepared: [Query: PreparedQuery] = [:]
    var cost = limits.queryOpeningCost
    for query in unwatched {
      let live = try LiveQuery(query, in: snapshot.state, cost: &cost, isAbandoned)
      prepared[query] = PreparedQuery(live, at: snapshot.revision, snapshot, limits: limits)
    }
    return prepared
  }
}

extension Publication {
  /// Brings a recently prepared query up to date in place, since a copy would copy all its rows. Does nothing if the
  /// history no longer reaches back to the query's revision.
  package func bringUp(_ prepared: inout [Query: PreparedQuery], _ query: Query) {
    guard let revision = prepared[query]?.revision,
      let commits = history.commits(after: revision, present: snapshot.revision)
    else { return }
    prepared[query]?.bringUp(through: commits, to: snapshot)
  }

  /// Returns the query brought up to date. Evaluates it now, under the lock, if it was not prepared or if the history
  /// no longer reaches back to its revision. Throws `malformed-filter` if filtering costs more than `request.steps`.
  package func finish(_ query: Query, _ prepared: PreparedQuery?) throws(ModelError) -> PreparedQuery {
    if var prepared, let commits = history.commits(after: prepared.revision, present: snapshot.revision) {
      prepared.bringUp(through: commits, to: snapshot)
      if let failure = prepared.failure { throw failure }
      return prepared
    }
    var cost = limits.queryOpeningCost
    return PreparedQuery(
      try LiveQuery(query, in: snapshot.state, cost: &cost), at: snapshot.revision, snapshot, limits: limits)
  }

  /// Registers an observer of a query. If the query has no other observer, it must have been finished under this lock.
  package mutating func watch(_ query: Query, _ observer: QueryObserver, _ finished: PreparedQuery?) {
    if !queries.watch(query, observer), let live = finished?.live { queries.add(live, observer: observer) }
  }
}

extension Publication {
  /// Returns the changes to a query after a revision, for a client that resumes there: `past` and `contents` are set.
  /// Returns nil if the history does not reach back so far.
  package func replay(
    _ query: Query, _ prepared: PreparedQuery?, after revision: Revision
  ) throws(ModelError) -> PreparedQuery? {
    if let prepared, prepared.past != nil {
      let finished = try finish(query, prepared)
      // It was prepared so long ago that it had to be evaluated anew: its changes are unknown.
      return finished.past == nil ? nil : finished
    }
    if queries.isUntouched(query, since: revision), let live = queries.live(query) {
      return PreparedQuery(live, at: snapshot.revision, snapshot, isPast: true, limits: limits)
    }
    guard let missed = MissedCommits(after: revision, publishedHistory) else { return nil }
    var cost = limits.queryOpeningCost
    let replayed = try PreparedQuery(query, missed, limits: limits, cost: &cost)
    if let failure = replayed.failure { throw failure }
    return replayed
  }
}

extension PreparedQuery {
  /// Creates a query as it was at a revision, with the changes since. Throws `malformed-filter` if it costs more than
  /// `cost`, from which the cost is deducted.
  init(
    _ query: Query, _ missed: MissedCommits, limits: StoreLimits, cost: inout Int, _ isAbandoned: () -> Bool = { false }
  ) throws(ModelError) {
    let live = try LiveQuery(query, in: missed.past, cost: &cost, isAbandoned)
    self.init(live, at: missed.after, missed.snapshot, isPast: true, limits: limits)
    bringUp(through: missed.commits, to: missed.snapshot, from: missed.past)
  }
}
