package import KeyValueModel
package import KeyValueObserving
package import Support
import Synchronization

/// The published state and its observers. They change together, so that between reading a state and observing the
/// changes after it none is lost or duplicated. Accessed only through `Store.withPublication`.
package struct Publication {
  /// The published state.
  package internal(set) var snapshot: Snapshot
  /// The observers.
  package var observers = ObserverIndex()
  /// The live queries and their observers.
  package var queries: LiveQueries
  /// The earlier commits, as far as they are kept.
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

  /// Publishes a state, with the limits that the history implies, and returns it as a snapshot.
  mutating func advance(to state: ModelState, _ revision: Revision) -> Snapshot {
    snapshot = Snapshot(state: state, revision: revision, after: history)
    return snapshot
  }

  /// Returns the limit that a client would exceed by opening one more live query, which has so many rows and no
  /// observer yet; nil if it may open the query. Another subscriber of a query that already has one needs no
  /// permission.
  package func refusal(ofQueryWithRows rows: Int, for payer: QueryPayer) -> QueryRefusal? {
    let holding = queries.holding(of: payer)
    let queryLimit = ShareLimit(total: limits.queries, perClient: limits.queriesPerClient)
    if let limit = queryLimit.refusal(of: 1, held: holding.queries, total: queries.count) { return .queries(limit) }
    let rowLimit = ShareLimit(total: limits.queryRows, perClient: limits.queryRowsPerClient)
    return rowLimit.refusal(of: rows, held: holding.rows, total: queries.rowCount).map { .rows($0) }
  }

  /// Returns the objects as they were at `revision`; nil if the history does not reach back so far. Costs what was
  /// written since.
  package func past(after revision: Revision) -> PastState? {
    history.commits(after: revision, present: snapshot.revision)
      .map { PastState(before: $0, of: snapshot.state) }
  }

  /// Calls `receive` with the changes, without their values, of which an uninterrupted observer with these observations
  /// would have been notified after `revision`. Returns the groups that are left out because one of their objects did
  /// not exist then; nil if the history does not reach back so far, or if the work would block the writer for too long.
  /// `cells` names the groups of observations as `ObserverIndex.add` does.
  package func replay(
    _ cells: [(name: String?, observations: [Observation])], after revision: Revision,
    receive: (ObserverEvent) -> Void
  ) -> [String?]? {
    guard revision >= snapshot.oldestResumable, revision <= snapshot.revision else { return nil }
    guard let missed = MissedCommits(after: revision, publishedHistory) else { return nil }
    if missed.commits.isEmpty {
      let state = snapshot.state
      return cells.filter { $0.observations.contains { !state.exists($0.object, for: $0.viewer) } }.map(\.name)
    }
    return Replay(
      cells.map { (name: $0.name, observations: $0.observations.map(\.withoutValues)) }, missed, limits: limits,
      steps: ObservedValues.stepsUnderLock, receive: receive
    ).absent
  }

  /// Returns true if the objects have not changed after a revision from which a client can resume.
  package func isUntouched(_ objects: Set<Reference>, after revision: Revision) -> Bool {
    revision >= snapshot.oldestResumable && revision <= snapshot.revision
      && history.isUntouched(objects, after: revision)
  }
}

/// A durable, published state with its revision. Immutable, so that its owner can read it at any time.
///
/// A class, so that taking it counts one reference instead of each of the state's.
package final class Snapshot: Sendable {
  /// The objects.
  package let state: ModelState
  /// The revision of the last transaction included in the state.
  package let revision: Revision
  /// The earliest revision from which a client can resume.
  package let oldestResumable: Revision
  /// The approximate size in bytes of the commits published from the start to this state. The difference between two
  /// states is the cost of keeping the older one.
  package let writtenBytes: Int

  /// Creates a snapshot of the state after the commits of a history.
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

/// The latest published state and its revision, which every request reads. The revision has no lock, since each thread
/// that takes a lock writes to it.
final class LatestSnapshot: Sendable {
  private let latest: Locked<Snapshot>
  private let latestRevision: Atomic<Revision>

  /// Creates the value with the first state.
  init(_ snapshot: Snapshot) {
    latest = Locked(snapshot)
    latestRevision = Atomic(snapshot.revision)
  }

  /// The state.
  var snapshot: Snapshot { latest.withLock { $0 } }

  /// The revision of the state. A thread that has seen a state reads at least that state's revision.
  var revision: Revision { latestRevision.load(ordering: .acquiring) }

  /// Replaces the state.
  func show(_ snapshot: Snapshot) {
    latest.withLock {
      $0 = snapshot
      latestRevision.store(snapshot.revision, ordering: .releasing)
    }
  }
}

/// Delivers the events of commits to the streams.
package protocol StorePublisher: Sendable {
  /// Publishes the events of a batch of durable commits. Called on the writer.
  ///
  /// `notify` computes the events and passes each to `receive` in the order of revisions, before the next ones are
  /// computed: a publisher that delivers them at once reaches the first observers while the last ones are still to be
  /// found. Call `notify` once. No observer can be added or removed in the meantime, so this must be quick, and must
  /// not call the store. `queryEvents` are the changes of the batch to live queries, also in the order of revisions.
  ///
  /// Returns the revision up to which every subscriber has received everything, or is known to lag.
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
