package import KeyValueModel
package import KeyValueObserving
package import Support

/// The limit on live queries that a client would exceed with one more.
package enum QueryRefusal: Hashable, Sendable {
  /// The limit on their number.
  case queries(ShareLimit.Refusal)
  /// The limit on their rows.
  case rows(ShareLimit.Refusal)
}

/// What is published, and its observers: the two change together, so that between reading a state and observing what
/// comes after it nothing can be lost or doubled. Reached through `Store.withPublication` alone.
package struct Publication {
  /// The published state.
  package internal(set) var snapshot: Snapshot
  /// The observers.
  package var observers = ObserverIndex()
  /// The live queries and their observers.
  package var queries: LiveQueries
  /// What was published before, as far as it is kept.
  package internal(set) var history: History
  package let limits: StoreLimits

  init(snapshot: Snapshot, history: History, limits: StoreLimits) {
    self.snapshot = snapshot
    self.history = history
    self.limits = limits
    queries = LiveQueries(
      filterCost: limits.queryFilterCost, recentLimit: limits.historyRevisions, commitCost: limits.queryCommitCost,
      revision: snapshot.revision)
  }

  /// Publishes a state, with what the history says of it; gives it as readers find it.
  mutating func advance(to state: ModelState, _ revision: Revision) -> Snapshot {
    snapshot = Snapshot(state: state, revision: revision, after: history)
    return snapshot
  }

  /// Returns the limit that a client would exceed if it opened one more live query, which has so many rows and which
  /// nobody watches yet; nil if it may. Another subscriber of a query that is watched already needs no permission.
  package func refusal(ofQueryWithRows rows: Int, for payer: QueryPayer) -> QueryRefusal? {
    let holding = queries.holding(of: payer)
    let queryLimit = ShareLimit(total: limits.queries, perClient: limits.queriesPerClient)
    if let limit = queryLimit.refusal(of: 1, held: holding.queries, total: queries.count) { return .queries(limit) }
    let rowLimit = ShareLimit(total: limits.queryRows, perClient: limits.queryRowsPerClient)
    return rowLimit.refusal(of: rows, held: holding.rows, total: queries.rowCount).map { .rows($0) }
  }

  /// The objects as they were at `revision`, nil where the history does not reach back so far. Costs what was written
  /// since.
  package func past(after revision: Revision) -> PastState? {
    history.commits(after: revision, present: snapshot.revision)
      .map { PastState(before: $0, of: snapshot.state) }
  }

  /// Calls `receive` with the changes, without their values, of which an unbroken observer with these observations
  /// would have been notified after `revision`. Returns the groups that are left out because an object of theirs did
  /// not exist then; nil if the history does not reach back so far, or if that would hold up the writer. `cells` names
  /// the groups of observations as `ObserverIndex.add` does.
  package func replay(
    _ cells: [(name: String?, observations: [Observation])], after revision: Revision,
    receive: (ObserverEvent) -> Void
  ) -> [String?]? {
    guard revision >= snapshot.oldestResumable, revision <= snapshot.revision else { return nil }
    guard let missed = MissedCommits(after: revision, publishedHistory) else { return nil }
    if missed.commits.isEmpty {
      let state = snapshot.state
      return cells.filter { $0.observations.contains { !state.isThere($0.object, for: $0.viewer) } }.map(\.name)
    }
    return Replay(
      cells.map { (name: $0.name, observations: $0.observations.map(\.withoutValues)) }, missed, limits: limits,
      steps: ObservedValues.stepsUnderLock, receive: receive
    ).absent
  }

  /// Whether nothing has become of objects after a revision that can be resumed.
  package func isUntouched(_ objects: Set<Reference>, after revision: Revision) -> Bool {
    revision >= snapshot.oldestResumable && revision <= snapshot.revision
      && history.isUntouched(objects, after: revision)
  }
}
