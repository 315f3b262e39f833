package import KeyValueModel
package import KeyValueObserving

/// A live query that was evaluated while others wrote: to be brought to the present when it is watched.
package struct PreparedQuery: Sendable {
  /// The query as it was at `revision`.
  var live: LiveQuery
  /// How far it has come.
  var revision: Revision
  /// What was published when it was evaluated.
  package let snapshot: Snapshot
  /// What it was at the cursor that somebody resumes from; nil where nobody does.
  package fileprivate(set) var past: QueryResult?
  /// What became of it since then.
  package fileprivate(set) var contents: [QueryContent] = []
  /// Why it cannot be told what became of it: its filter came to cost too much on the way.
  package fileprivate(set) var failure: ModelError?

  /// How many rows it has, those outside of the window too.
  package var rowCount: Int { live.rowCount }

  /// Its rows.
  package var result: QueryResult { live.result }

  /// Goes on to the state after some commits, which follow on what it has seen.
  mutating func bringUp(through commits: [Commit], to present: ModelState, limits: StoreLimits) {
    guard let last = commits.last, failure == nil else { return }
    var queries = LiveQueries(filterCost: limits.queryFilterCost, recentLimit: 0)
    let query = live.query
    queries.add(live, watcher: QueryWatcher(observer: ObserverID(0), cell: nil))
    queries.tell(commits, of: present) { event in
      switch event.outcome {
      case .content(let content): contents.append(content)
      case .failed(let error): failure = error
      }
    }
    if let live = queries.live(query) { self.live = live }
    revision = last.revision
  }
}

extension ModelStore {
  /// Evaluates queries that nobody watches yet, without holding anything up; with a cursor, from its revision on, for
  /// somebody who resumes there. Throws `malformed-filter` where they cost more than `fetch.filterCost` together.
  package func prepare(
    _ queries: some Collection<Query>, after cursor: Revision? = nil
  ) throws(ModelError) -> [Query: PreparedQuery] {
    guard !queries.isEmpty else { return [:] }
    typealias Basis = (snapshot: Snapshot, commits: [Commit]?, unwatched: Set<Query>)
    let wanted = Set(queries)
    let basis: Basis = withPublication { publication in
      let snapshot = publication.snapshot
      guard let cursor, let commits = publication.history.commits(after: cursor, present: snapshot.revision) else {
        return (snapshot, nil, wanted.filter { publication.queries.result(of: $0) == nil })
      }
      return (snapshot, commits, wanted.filter { !publication.queries.isUntouched($0, since: cursor) })
    }
    var prepared: [Query: PreparedQuery] = [:]
    var cost = limits.queryOpeningCost
    for query in basis.unwatched {
      let present = basis.snapshot.state
      guard let commits = basis.commits, let cursor else {
        let live = try LiveQuery(query, in: present, cost: &cost)
        prepared[query] = PreparedQuery(live: live, revision: basis.snapshot.revision, snapshot: basis.snapshot)
        continue
      }
      let past = PastState(before: commits, of: present)
      let live = try LiveQuery(query, in: past, cost: &cost)
      var entry = PreparedQuery(live: live, revision: cursor, snapshot: basis.snapshot, past: live.result)
      entry.bringUp(through: commits, to: present, limits: limits)
      prepared[query] = entry
    }
    return prepared
  }
}

extension Publication {
  /// Brings a query to the present that was prepared a moment ago; evaluates it here and now where it was not, or where
  /// that was too long ago. Throws `malformed-filter` where filtering costs more than `fetch.filterCost`.
  package func finish(_ query: Query, _ prepared: PreparedQuery?) throws(ModelError) -> PreparedQuery {
    if var prepared, let commits = history.commits(after: prepared.revision, present: snapshot.revision) {
      prepared.bringUp(through: commits, to: snapshot.state, limits: limits)
      if let failure = prepared.failure { throw failure }
      return prepared
    }
    var cost = limits.queryOpeningCost
    return PreparedQuery(
      live: try LiveQuery(query, in: snapshot.state, cost: &cost),
      revision: snapshot.revision, snapshot: snapshot)
  }

  /// Has somebody watch a query, which has been finished under this lock where nobody watches it.
  package mutating func watch(_ query: Query, _ watcher: QueryWatcher, _ finished: PreparedQuery?) {
    if !queries.watch(query, watcher), let finished { queries.add(finished.live, watcher: watcher) }
  }
}

extension Publication {
  /// What became of a query after a revision, for somebody who resumes there: `past` and `contents` are set. Nil where
  /// the history does not reach back so far.
  package func replay(
    _ query: Query, _ prepared: PreparedQuery?, after revision: Revision
  ) throws(ModelError) -> PreparedQuery? {
    if let prepared, prepared.past != nil {
      let finished = try finish(query, prepared)
      // It was prepared so long ago that it had to be evaluated anew: nobody knows what became of it.
      return finished.past == nil ? nil : finished
    }
    if queries.isUntouched(query, since: revision), let live = queries.live(query) {
      return PreparedQuery(live: live, revision: snapshot.revision, snapshot: snapshot, past: live.result)
    }
    guard let commits = history.commits(after: revision, present: snapshot.revision) else { return nil }
    let past = PastState(before: commits, of: snapshot.state)
    var cost = limits.queryOpeningCost
    let live = try LiveQuery(query, in: past, cost: &cost)
    var replayed = PreparedQuery(live: live, revision: revision, snapshot: snapshot, past: live.result)
    replayed.bringUp(through: commits, to: snapshot.state, limits: limits)
    if let failure = replayed.failure { throw failure }
    return replayed
  }
}
