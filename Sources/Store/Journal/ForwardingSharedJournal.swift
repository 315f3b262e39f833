/// A journal of several nodes that hands on to another what it does not do itself.
package protocol ForwardingSharedJournal: ForwardingJournal, SharedJournal {
  /// The other journal.
  var sharedBase: any SharedJournal { get }
}

extension ForwardingSharedJournal {
  /// See `ForwardingJournal.base`.
  package var base: any TransactionJournal { sharedBase }

  /// See `SharedJournal.pen`.
  package var pen: String { sharedBase.pen }
  /// See `SharedJournal.hasPen`.
  package var hasPen: Bool { sharedBase.hasPen }
  /// See `SharedJournal.revocationChanges`.
  package var revocationChanges: UInt64 { sharedBase.revocationChanges }
  /// See `SharedJournal.silence`.
  package var silence: Duration { sharedBase.silence }
  /// See `SharedJournal.newest`.
  package var newest: (revision: UInt64, digest: JournalDigest) { sharedBase.newest }
  /// See `SharedJournal.cache`.
  package var cache: JournalCache? { sharedBase.cache }

  /// See `SharedJournal.keepCache(_:)`.
  package func keepCache(_ whenMade: @escaping @Sendable (SQLiteJournal) -> Void) { sharedBase.keepCache(whenMade) }
  /// See `SharedJournal.confirm(_:)`.
  package func confirm(_ revision: UInt64) throws(JournalError) { try sharedBase.confirm(revision) }
  /// See `SharedJournal.refresh()`.
  package func refresh() throws(JournalError) { try sharedBase.refresh() }

  /// See `SharedJournal.waitForOthers(beyond:for:)`.
  package func waitForOthers(beyond revision: UInt64, for time: Duration) throws(JournalError) {
    try sharedBase.waitForOthers(beyond: revision, for: time)
  }

  /// See `SharedJournal.nodes()`.
  package func nodes() throws(JournalError) -> [String] { try sharedBase.nodes() }
  /// See `SharedJournal.vouch(for:)`.
  package func vouch(for nodes: [String]) { sharedBase.vouch(for: nodes) }

  /// See `SharedJournal.recentRecords(after:limit:bytes:)`.
  package func recentRecords(after revision: UInt64, limit: Int, bytes: Int) -> [JournalRecord]? {
    sharedBase.recentRecords(after: revision, limit: limit, bytes: bytes)
  }

  /// See `SharedJournal.handed(after:_:bytes:)`.
  package func handed(after revision: UInt64, _ digest: JournalDigest, bytes: Int) -> HandedRecords? {
    sharedBase.handed(after: revision, digest, bytes: bytes)
  }

  /// See `SharedJournal.take(_:)`.
  package func take(_ handed: HandedRecords) -> Bool { sharedBase.take(handed) }
  /// See `SharedJournal.isMissing()`.
  package func isMissing() throws(JournalError) -> Bool { try sharedBase.isMissing() }
  /// See `SharedJournal.end(_:)`.
  package func end(_ end: JournalEnd) { sharedBase.end(end) }
  /// See `SharedJournal.whenOver(_:)`.
  package func whenOver(_ action: @escaping @Sendable (JournalEnd) -> Void) { sharedBase.whenOver(action) }
}
