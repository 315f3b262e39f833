package import KeyValueModel

/// What the store may hold.
package struct StoreLimits: Sendable {
  /// The most writes that wait for the writer; one more is refused as overloaded. `writes.queued`.
  package var queuedWrites = 8192
  /// The same for one client: seven eighths.
  package var queuedWritesPerClient: Int { queuedWrites - queuedWrites / 8 }
  /// The most bytes, as the journal has them, of the writes that are committed together; the others wait for the next
  /// sync.
  package var batchBytes = 8 * 1024 * 1024
  /// The most bytes of memory by which the writes of one client may make the objects grow, since the start; 0 for no
  /// bound. `objects.bytesPerClient`.
  package var growthPerClient = 0
  /// The limits of one transaction, and of the memory that the objects take after it. `object.bytes`,
  /// `transaction.bytes`, `transaction.steps`, `objects.bytes`.
  package var transaction = TransactionLimits()
  /// The most commits that are kept for resuming clients. `history.revisions`.
  package var historyRevisions = 10_000
  /// The most bytes that these commits take, about. `history.bytes`.
  package var historyBytes = 64 * 1024 * 1024
  /// How long commits are kept for resuming clients, in seconds; 0 for as long as there is room. `history.seconds`.
  package var historySeconds = 86_400
  /// Within how many seconds of a restart the objects end that last with a stream. `streams.resumeSeconds`.
  package var streamLeaseSeconds = 60
  /// The most objects that end by themselves. `leases.maximum`.
  package var leases = 2_000_000
  /// The most of them that one client has made so. `leases.perClient`.
  package var leasesPerClient = 1_000_000
  /// After how many commits the state is written down anew. `snapshot.revisions`.
  package var snapshotRevisions = 100_000
  /// After how many bytes of the journal the state is written down anew. `snapshot.bytes`.
  package var snapshotBytes = 256 * 1024 * 1024
  /// The most notifications of one commit for one observer; who would get more is told that it missed some.
  /// `streams.changesPerEvent`.
  package var changesPerObserver = 100_000
  /// The most bytes of text in the values of these, likewise. `streams.eventBytes`.
  package var bytesPerObserver = 16 * 1024 * 1024
  /// The most commits that are kept, besides the history, with the objects as they were before them: shared by those
  /// who resume from the same revision at about the same time.
  package var resumedRevisions = 50_000
  /// The most rows of live queries that were evaluated for one resuming client and are kept for the next.
  package var resumedRows = 200_000

  /// The most that the filter of a live query may cost when it is opened. `request.steps`.
  package var queryOpeningCost = 20_000_000
  /// The most steps that all live queries may cost for each commit of one object, to which each further object adds
  /// some: what does not suffice for all is shared by those who watch them. `queries.commitSteps`.
  package var queryCommitCost = 500_000
  /// The most steps that one of them may cost for each commit, however many objects that has.
  package var queryFilterCost: Int { 4 * queryCommitCost }
  /// The most different live queries that are open. `queries.maximum`.
  package var queries = 20_000
  /// The most live queries of one client. `queries.perClient`.
  package var queriesPerClient = 17_500
  /// The most steps that notifying all observers may take for the commits of one batch, to which each object that they
  /// write but the first adds some: what does not suffice for all is shared by their clients.
  /// `observations.commitSteps`.
  package var observationCommitSteps = 500_000
  /// The most rows that all live queries may have together when one more is opened. `queries.rows`.
  package var queryRows = 5_000_000
  /// The most rows of the live queries of one client. `queries.rowsPerClient`.
  package var queryRowsPerClient = 4_375_000

  /// The defaults.
  package init() {}
}

extension StoreLimits {
  /// For a state without the commits before it.
  static var withoutHistory: StoreLimits {
    var limits = StoreLimits()
    limits.historyRevisions = 0
    return limits
  }
}
