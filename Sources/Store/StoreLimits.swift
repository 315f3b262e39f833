package import KeyValueModel

/// The limits of a store.
package struct StoreLimits: Sendable {
  /// The maximum number of writes that wait for the writer; one more is refused as overloaded. `writes.queued`.
  package var queuedWrites = 8192
  /// The maximum number of waiting writes of one client: seven eighths of `queuedWrites`.
  package var queuedWritesPerClient: Int { queuedWrites - queuedWrites / 8 }
  /// The maximum size, in bytes of the journal, of the writes that are committed together; the others wait for the next
  /// sync.
  package var batchBytes = 8 * 1024 * 1024
  /// The maximum number of bytes by which the writes of one client may make the objects grow since the start; 0 for no
  /// limit. `objects.bytesPerClient`.
  package var growthPerClient = 0
  /// The limits of one transaction, and of the memory that the objects take after it. `object.bytes`,
  /// `transaction.bytes`, `transaction.steps`, `objects.bytes`.
  package var transaction = TransactionLimits()
  /// The maximum number of commits kept for resuming clients. `history.revisions`.
  package var historyRevisions = 10_000
  /// The approximate maximum size of these commits in bytes. `history.bytes`.
  package var historyBytes = 64 * 1024 * 1024
  /// The time for which commits are kept for resuming clients, in seconds; 0 for as long as there is room.
  /// `history.seconds`.
  package var historySeconds = 86_400
  /// The time after a restart within which leases bound to streams expire, in seconds. `streams.resumeSeconds`.
  package var streamLeaseSeconds = 60
  /// The maximum number of objects with a lease. `leases.maximum`.
  package var leases = 2_000_000
  /// The maximum number of leases that count for one client. `leases.perClient`.
  package var leasesPerClient = 1_000_000
  /// The number of commits after which a new snapshot is written. `snapshot.revisions`.
  package var snapshotRevisions = 100_000
  /// The number of bytes in the journal after which a new snapshot is written. `snapshot.bytes`.
  package var snapshotBytes = 256 * 1024 * 1024
  /// The maximum number of notifications of one commit for one observer; an observer that would get more is told that
  /// it missed some. `streams.changesPerEvent`.
  package var changesPerObserver = 100_000
  /// The maximum size of the text in the values of these notifications, in bytes, with the same effect.
  /// `streams.eventBytes`.
  package var bytesPerObserver = 16 * 1024 * 1024
  /// The maximum number of commits kept in addition to the history, with the objects as they were before them, for
  /// clients that resume from the same revision at about the same time.
  package var resumedRevisions = 50_000
  /// The maximum number of rows of live queries that were evaluated for one resuming client and are kept for the next.
  package var resumedRows = 200_000

  /// The maximum cost of a live query's filter when the query is opened, in steps. `request.steps`.
  package var queryOpeningCost = 20_000_000
  /// The maximum number of steps that all live queries may cost for a commit of one object; each further object adds
  /// some. If that does not suffice for all, it is shared among the clients that watch them. `queries.commitSteps`.
  package var queryCommitCost = 500_000
  /// The maximum number of steps that one live query may cost for a commit, however many objects the commit has.
  package var queryFilterCost: Int { 4 * queryCommitCost }
  /// The maximum number of different live queries that are open. `queries.maximum`.
  package var queries = 20_000
  /// The maximum number of live queries of one client. `queries.perClient`.
  package var queriesPerClient = 17_500
  /// The maximum number of steps that notifying all observers may take for the commits of one batch; each object that
  /// they write beyond the first adds some. If that does not suffice for all, it is shared among their clients.
  /// `observations.commitSteps`.
  package var observationCommitSteps = 500_000
  /// The maximum number of rows that all live queries may have together when one more is opened. `queries.rows`.
  package var queryRows = 5_000_000
  /// The maximum number of rows of the live queries of one client. `queries.rowsPerClient`.
  package var queryRowsPerClient = 4_375_000

  /// Creates the default limits.
  package init() {}
}

extension StoreLimits {
  /// The limits for restoring a state without the commits before it.
  static var withoutHistory: StoreLimits {
    var limits = StoreLimits()
    limits.historyRevisions = 0
    return limits
  }
}
