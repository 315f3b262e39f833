/// What the store may hold.
package struct StoreLimits: Sendable {
  /// The most writes that wait for the writer; one more is refused as overloaded. `writes.queued`.
  package var queuedWrites = 8192
  /// The most commits that are kept for those who resume. `history.revisions`.
  package var historyRevisions = 10_000
  /// The most bytes that these commits take, about. `history.bytes`.
  package var historyBytes = 64 * 1024 * 1024
  /// The most notifications of one commit for one observer; who would get more is told that it missed some.
  /// `streams.changesPerEvent`.
  package var changesPerObserver = 100_000

  /// The most that the filter of a live query may cost when it is opened. `fetch.filterCost`.
  package var queryOpeningCost = 20_000_000
  /// The most that the filter of a live query may cost for each commit. `queries.filterCost`.
  package var queryFilterCost = 2_000_000
  /// The most rows that all live queries may have together when one more is opened. `queries.rows`.
  package var queryRows = 5_000_000

  /// The defaults.
  package init() {}
}
