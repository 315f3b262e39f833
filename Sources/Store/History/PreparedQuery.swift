package import KeyValueModel
package import KeyValueObserving
import Support

/// A live query that was evaluated while others wrote: to be brought to the present when it is observed.
package struct PreparedQuery: Sendable {
  private static let observer = QueryObserver(id: ObserverID(0), cell: nil)

  private let query: Query
  /// The query alone, as it was at `revision`; none after a failure. Kept whole, because who took the query out to
  /// bring it up would copy its rows.
  private var queries: LiveQueries
  /// How far it has come.
  package private(set) var revision: Revision
  /// What was published when it was evaluated, or last brought up.
  package private(set) var snapshot: Snapshot
  /// What it was at the cursor that a client resumes from; nil where none does.
  package let past: QueryResult?
  /// What became of it since then.
  package private(set) var contents: [QueryContent] = []
  /// Why it cannot be told what became of it: its filter came to cost too much on the way.
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

  /// The query as it is; nil after a failure.
  fileprivate var live: LiveQuery? { queries.live(query) }

  /// How many rows it has, those outside of the window too.
  package var rowCount: Int { queries.rowCount }

  /// Its rows.
  package var result: QueryResult { queries.result(of: query) ?? QueryResult(nothingOf: query) }

  /// Goes on to the snapshot after some commits, which follow on what it has seen; `before` is the state before them,
  /// where it is known.
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
  /// Evaluates queries that have no observer yet, without holding anything up. Throws `malformed-filter` where they
  /// cost more than `request.steps` together, or `isAbandoned` says that they are no longer wanted.
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
  /// Brings a query that was prepared a moment ago to the present, where it stands: a copy would be one of all its
  /// rows. Does nothing where that was too long ago.
  package func bringUp(_ prepared: inout [Query: PreparedQuery], _ query: Query) {
    guard let revision = prepared[query]?.revision,
      let commits = history.commits(after: revision, present: snapshot.revision)
    else { return }
    prepared[query]?.bringUp(through: commits, to: snapshot)
  }

  /// Brings a query to the present that was prepared a moment ago; evaluates it here and now where it was not, or where
  /// that was too long ago. Throws `malformed-filter` where filtering costs more than `request.steps`.
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

  /// Has an observer watch a query, which has been finished under this lock where it has no other.
  package mutating func watch(_ query: Query, _ observer: QueryObserver, _ finished: PreparedQuery?) {
    if !queries.watch(query, observer), let live = finished?.live { queries.add(live, observer: observer) }
  }
}

extension Publication {
  /// What became of a query after a revision, for a client that resumes there: `past` and `contents` are set. Nil where
  /// the history does not reach back so far.
  package func replay(
    _ query: Query, _ prepared: PreparedQuery?, after revision: Revision
  ) throws(ModelError) -> PreparedQuery? {
    if let prepared, prepared.past != nil {
      let finished = try finish(query, prepared)
      // It was prepared so long ago that it had to be evaluated anew: what became of it is not known.
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
  /// A query as it was at a revision, with what became of it since. Throws `malformed-filter` where it costs more than
  /// `cost`, which is spent from.
  init(
    _ query: Query, _ missed: MissedCommits, limits: StoreLimits, cost: inout Int, _ isAbandoned: () -> Bool = { false }
  ) throws(ModelError) {
    let live = try LiveQuery(query, in: missed.past, cost: &cost, isAbandoned)
    self.init(live, at: missed.after, missed.snapshot, isPast: true, limits: limits)
    bringUp(through: missed.commits, to: missed.snapshot, from: missed.past)
  }
}
