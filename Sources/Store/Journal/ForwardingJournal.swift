/// A journal that forwards to another journal the calls that it does not implement itself.
package protocol ForwardingJournal: TransactionJournal {
  /// The other journal.
  var base: any TransactionJournal { get }
}

extension ForwardingJournal {
  /// See `TransactionJournal.identity`.
  package var identity: JournalIdentity { base.identity }
  /// See `TransactionJournal.bounds`.
  package var bounds: JournalBounds { base.bounds }
  /// See `TransactionJournal.directory`.
  package var directory: String? { base.directory }
  /// See `TransactionJournal.isVolatile`.
  package var isVolatile: Bool { base.isVolatile }

  /// See `TransactionJournal.append(_:after:)`.
  package func append(_ records: [JournalRecord], after expected: UInt64) throws(JournalError) {
    try base.append(records, after: expected)
  }

  /// See `TransactionJournal.records(after:limit:bytes:waiting:)`.
  package func records(
    after revision: UInt64, limit: Int, bytes: Int, waiting: Duration
  ) throws(JournalError) -> [JournalRecord] {
    try base.records(after: revision, limit: limit, bytes: bytes, waiting: waiting)
  }

  /// See `TransactionJournal.digest(at:)`.
  package func digest(at revision: UInt64) throws(JournalError) -> JournalDigest? { try base.digest(at: revision) }

  /// See `TransactionJournal.snapshots()`.
  package func snapshots() throws(JournalError) -> [JournalSnapshot] { try base.snapshots() }

  /// See `TransactionJournal.writeSnapshot(at:milliseconds:_:)`.
  package func writeSnapshot(
    at revision: UInt64, milliseconds: Int64, _ next: () throws -> [UInt8]?
  ) throws(JournalError) {
    try base.writeSnapshot(at: revision, milliseconds: milliseconds, next)
  }

  /// See `TransactionJournal.readSnapshot(_:_:)`.
  package func readSnapshot(_ snapshot: JournalSnapshot, _ receive: ([UInt8]) throws -> Void) throws {
    try base.readSnapshot(snapshot, receive)
  }

  /// See `TransactionJournal.file(of:)`.
  package func file(of snapshot: JournalSnapshot) -> String? { base.file(of: snapshot) }

  /// See `TransactionJournal.compact(upTo:)`.
  package func compact(upTo revision: UInt64) throws(JournalError) { try base.compact(upTo: revision) }

  /// See `TransactionJournal.rebase(to:schema:milliseconds:_:)`.
  package func rebase(
    to revision: UInt64, schema: String, milliseconds: Int64, _ next: () throws -> [UInt8]?
  ) throws(JournalError) {
    try base.rebase(to: revision, schema: schema, milliseconds: milliseconds, next)
  }

  /// See `TransactionJournal.revocations()`.
  package func revocations() throws(JournalError) -> [Revocation] { try base.revocations() }

  /// See `TransactionJournal.setRevocation(of:to:)`.
  package func setRevocation(of subject: String, to milliseconds: Int64?) throws(JournalError) {
    try base.setRevocation(of: subject, to: milliseconds)
  }

  /// See `TransactionJournal.recover()`.
  package func recover() throws(JournalError) { try base.recover() }
  /// See `TransactionJournal.checkPresence()`.
  package func checkPresence() throws(JournalError) { try base.checkPresence() }
  /// See `TransactionJournal.probe(bytes:)`.
  package func probe(bytes: Int) throws(JournalError) { try base.probe(bytes: bytes) }
  /// See `TransactionJournal.maintain()`.
  package func maintain() { base.maintain() }
  /// See `TransactionJournal.close()`.
  package func close() { base.close() }
}

/// A journal shared by several nodes that forwards to another journal the calls that it does not implement itself.
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
