package import KeyValueModel
package import KeyValueObserving
package import Support
import Synchronization

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

/// A durable, published state with its revision. Immutable: its owner reads on undisturbed.
///
/// A class, so that a reader that takes it counts one reference and not each of the state's.
package final class Snapshot: Sendable {
  /// The objects.
  package let state: ModelState
  /// The last transaction that is in them.
  package let revision: Revision
  /// The earliest revision that can be resumed.
  package let oldestResumable: Revision
  /// About how many bytes the commits took that were published by then, since the start: between two states, what
  /// keeping the older one costs.
  package let writtenBytes: Int

  /// A state behind the commits of a history.
  convenience init(state: ModelState, revision: Revision, after history: History) {
    self.init(
      state: state, revision: revision, oldestResumable: history.oldestResumable(at: revision),
      writtenBytes: history.writtenBytes)
  }

  init(state: ModelState, revision: Revision, oldestResumable: Revision, writtenBytes: Int = 0) {
    self.state = state
    self.revision = revision
    self.oldestResumable = oldestResumable
    self.writtenBytes = writtenBytes
  }
}

/// The state that readers find, and how far it has come, which every request asks. There is no lock for that: each
/// thread that takes one writes to it.
final class LatestSnapshot: Sendable {
  private let latest: Locked<Snapshot>
  private let latestRevision: Atomic<Revision>

  /// Readers find this state first.
  init(_ snapshot: Snapshot) {
    latest = Locked(snapshot)
    latestRevision = Atomic(snapshot.revision)
  }

  /// The state.
  var snapshot: Snapshot { latest.withLock { $0 } }

  /// Its revision. Who has seen a state, finds at least its revision.
  var revision: Revision { latestRevision.load(ordering: .acquiring) }

  /// From now on readers find this state.
  func show(_ snapshot: Snapshot) {
    latest.withLock {
      $0 = snapshot
      latestRevision.store(snapshot.revision, ordering: .releasing)
    }
  }
}

/// Passes the events of commits on to the streams.
package protocol StorePublisher: Sendable {
  /// Called on the writer, for each batch of durable commits. `notify` has their events worked out, and gives each to
  /// what it is called with, in the order of revisions, while the next are not made yet: a publisher that passes them
  /// on at once has the first observers told while the last are still to be found. It is to be called once. No observer
  /// can come or go meanwhile, so this must be quick, and must not call the store. `queryEvents` are what the batch did
  /// to live queries, in the order of revisions too.
  ///
  /// Gives the revision up to which every subscriber has received everything, or is known to lag.
  func publish(
    _ queryEvents: [QueryEvent], upTo revision: Revision,
    notifying notify: (_ receive: (ObserverEvent) -> Void) -> Void
  ) -> Revision
}

/// The limit on live queries that a client would exceed with one more.
package enum QueryRefusal: Hashable, Sendable {
  /// The limit on their number.
  case queries(ShareLimit.Refusal)
  /// The limit on their rows.
  case rows(ShareLimit.Refusal)
}
