/// A journal that this node shares with others, and what it keeps of it. What is written goes to the journal alone; the
/// cache follows by itself. What is read comes from the newest records, then from the cache, and only then from where
/// the journal is kept.
package final class CachedJournal: SharedJournal {
  private let origin: any SharedJournal
  private let kept: JournalCache

  /// A journal and a cache of it, which is of the same history and not further, or is to be made.
  package init(_ origin: any SharedJournal, _ cache: JournalCache) {
    (self.origin, kept) = (origin, cache)
  }

  deinit {
    close()
  }

  /// What this node keeps of it.
  package var cache: JournalCache? { kept }

  /// See `SharedJournal.keepCache(_:)`.
  package func keepCache(_ whenMade: @escaping @Sendable (SQLiteJournal) -> Void) { kept.follow(origin, whenMade) }

  // MARK: Records

  /// See `TransactionJournal.records(after:limit:bytes:waiting:)`.
  package func records(
    after revision: UInt64, limit: Int, bytes: Int, waiting: Duration
  ) throws(JournalError) -> [JournalRecord] {
    guard var found = keptRecords(after: revision, limit: limit, bytes: bytes), let newest = found.last?.revision else {
      return try origin.records(after: revision, limit: limit, bytes: bytes, waiting: waiting)
    }
    let size = found.reduce(0) { $0 + $1.body.count }
    // The cache may lack the end.
    if found.count < limit, size < bytes, newest < bounds.last {
      found += try origin.records(after: newest, limit: limit - found.count, bytes: bytes - size, waiting: .zero)
    }
    return found
  }

  /// Those of the cache, where it is to be asked.
  private func keptRecords(after revision: UInt64, limit: Int, bytes: Int) -> [JournalRecord]? {
    guard let journal = kept.journal, revision < journal.bounds.last, revision >= origin.bounds.base,
      origin.recentRecords(after: revision, limit: 1, bytes: 1) == nil
    else { return nil }
    return try? journal.records(after: revision, limit: limit, bytes: bytes, waiting: .zero)
  }

  /// See `TransactionJournal.append(_:after:)`.
  package func append(_ records: [JournalRecord], after expected: UInt64) throws(JournalError) {
    try origin.append(records, after: expected)
  }

  /// See `TransactionJournal.digest(at:)`.
  package func digest(at revision: UInt64) throws(JournalError) -> JournalDigest? {
    try origin.digest(at: revision)
  }

  // MARK: Revocations

  /// See `TransactionJournal.revocations()`. Where the journal does not answer, those of the cache.
  package func revocations() throws(JournalError) -> [Revocation] {
    let found: [Revocation]
    do throws(JournalError) {
      found = try origin.revocations()
    } catch {
      guard case .refused = error, let journal = kept.journal else { throw error }
      return try journal.revocations()
    }
    try? kept.keep(found)
    return found
  }

  /// See `TransactionJournal.setRevocation(of:to:)`.
  package func setRevocation(of subject: String, to milliseconds: Int64?) throws(JournalError) {
    try origin.setRevocation(of: subject, to: milliseconds)
    try? kept.journal?.setRevocation(of: subject, to: milliseconds)
  }

  // MARK: What the journal alone knows and does

  /// What the journal is.
  package var identity: JournalIdentity { origin.identity }
  /// How far it reaches, as far as this node has heard.
  package var bounds: JournalBounds { origin.bounds }
  /// Where the cache is.
  package var directory: String? { kept.journal?.directory }
  /// Whether it ends with the process.
  package var isVolatile: Bool { origin.isVolatile }
  /// The address of the node that appended last.
  package var pen: String { origin.pen }
  /// Whether this node appended last.
  package var hasPen: Bool { origin.hasPen }
  /// How often the revocations were changed by any node.
  package var revocationChanges: UInt64 { origin.revocationChanges }
  /// How long ago it was last heard.
  package var silence: Duration { origin.silence }

  /// See `TransactionJournal.snapshots()`.
  package func snapshots() throws(JournalError) -> [JournalSnapshot] { try origin.snapshots() }

  /// See `TransactionJournal.writeSnapshot(at:milliseconds:_:)`.
  package func writeSnapshot(
    at revision: UInt64, milliseconds: Int64, _ next: () throws -> [UInt8]?
  ) throws(JournalError) {
    try origin.writeSnapshot(at: revision, milliseconds: milliseconds, next)
  }

  /// See `TransactionJournal.readSnapshot(_:_:)`.
  package func readSnapshot(_ snapshot: JournalSnapshot, _ receive: ([UInt8]) throws -> Void) throws {
    try origin.readSnapshot(snapshot, receive)
  }

  /// See `TransactionJournal.compact(upTo:)`.
  package func compact(upTo revision: UInt64) throws(JournalError) { try origin.compact(upTo: revision) }

  /// See `TransactionJournal.rebase(to:schema:milliseconds:_:)`. What is kept is of no use after that.
  package func rebase(
    to revision: UInt64, schema: String, milliseconds: Int64, _ next: () throws -> [UInt8]?
  ) throws(JournalError) {
    try origin.rebase(to: revision, schema: schema, milliseconds: milliseconds, next)
  }

  /// See `TransactionJournal.recover()`.
  package func recover() throws(JournalError) { try origin.recover() }
  /// See `TransactionJournal.checkPresence()`.
  package func checkPresence() throws(JournalError) { try origin.checkPresence() }
  /// See `TransactionJournal.probe(bytes:)`.
  package func probe(bytes: Int) throws(JournalError) { try origin.probe(bytes: bytes) }
  /// See `TransactionJournal.maintain()`.
  package func maintain() { origin.maintain() }
  /// See `SharedJournal.confirm(_:)`.
  package func confirm(_ revision: UInt64) throws(JournalError) { try origin.confirm(revision) }
  /// See `SharedJournal.refresh()`.
  package func refresh() throws(JournalError) { try origin.refresh() }
  /// See `SharedJournal.waitForOthers(beyond:for:)`.
  package func waitForOthers(beyond revision: UInt64, for time: Duration) throws(JournalError) {
    try origin.waitForOthers(beyond: revision, for: time)
  }
  /// See `SharedJournal.nodes()`.
  package func nodes() throws(JournalError) -> [String] { try origin.nodes() }
  /// See `SharedJournal.vouch(for:)`.
  package func vouch(for nodes: [String]) { origin.vouch(for: nodes) }
  /// See `SharedJournal.recentRecords(after:limit:bytes:)`.
  package func recentRecords(after revision: UInt64, limit: Int, bytes: Int) -> [JournalRecord]? {
    origin.recentRecords(after: revision, limit: limit, bytes: bytes)
  }
  /// The newest record that this node has, with its digest.
  package var newest: (revision: UInt64, digest: JournalDigest) { origin.newest }
  /// See `SharedJournal.handed(after:_:bytes:)`.
  package func handed(after revision: UInt64, _ digest: JournalDigest, bytes: Int) -> HandedRecords? {
    origin.handed(after: revision, digest, bytes: bytes)
  }
  /// See `SharedJournal.take(_:)`.
  package func take(_ handed: HandedRecords) -> Bool { origin.take(handed) }
  /// See `SharedJournal.isMissing()`.
  package func isMissing() throws(JournalError) -> Bool { try origin.isMissing() }
  /// See `SharedJournal.end(_:)`.
  package func end(_ end: JournalEnd) { origin.end(end) }
  /// See `SharedJournal.whenOver(_:)`.
  package func whenOver(_ action: @escaping @Sendable (JournalEnd) -> Void) { origin.whenOver(action) }

  /// See `TransactionJournal.close()`.
  package func close() {
    origin.close()
    kept.stop(origin)
  }
}
