package import Journal
package import Locking

/// A journal that others append to right before each append of this node, as `overtaking` says.
package final class OvertakenJournal: SharedJournal {
  /// What others do before each append.
  package struct Overtaking: Sendable {
    /// Has another node append.
    package var append: (@Sendable () -> Void)?
    /// How often it was called.
    package var count = 0
    /// Who is said to have appended last; as the journal says, where it is nil.
    package var pen: String?
  }

  private let base: any SharedJournal
  /// What others do from now on.
  package let overtaking = Locked(Overtaking())

  /// A journal over another, which nobody is made to append to before `overtaking` says so.
  package init(_ base: any SharedJournal) { self.base = base }

  /// See `TransactionJournal.append`.
  package func append(_ records: [JournalRecord], after expected: UInt64) throws(JournalError) {
    let append = overtaking.withLock { overtaking in
      if overtaking.append != nil { overtaking.count += 1 }
      return overtaking.append
    }
    append?()
    try base.append(records, after: expected)
  }

  /// Nobody before another node has overtaken this one: it appends by itself until then.
  package var pen: String {
    let (pen, count) = overtaking.withLock { ($0.pen, $0.count) }
    return pen ?? (count == 0 ? "" : base.pen)
  }

  // MARK: As the other journal does

  /// See `TransactionJournal.identity`.
  package var identity: JournalIdentity { base.identity }
  /// See `TransactionJournal.bounds`.
  package var bounds: JournalBounds { base.bounds }
  /// See `TransactionJournal.directory`.
  package var directory: String? { base.directory }
  /// See `TransactionJournal.isVolatile`.
  package var isVolatile: Bool { base.isVolatile }
  /// See `SharedJournal.hasPen`.
  package var hasPen: Bool { base.hasPen }
  /// See `SharedJournal.revocationChanges`.
  package var revocationChanges: UInt64 { base.revocationChanges }
  /// See `SharedJournal.silence`.
  package var silence: Duration { base.silence }
  /// See `SharedJournal.newest`.
  package var newest: (revision: UInt64, digest: JournalDigest) { base.newest }

  /// See `TransactionJournal.records`.
  package func records(
    after revision: UInt64, limit: Int, bytes: Int, waiting: Duration
  ) throws(JournalError) -> [JournalRecord] {
    try base.records(after: revision, limit: limit, bytes: bytes, waiting: waiting)
  }

  /// See `TransactionJournal.digest`.
  package func digest(at revision: UInt64) throws(JournalError) -> JournalDigest? { try base.digest(at: revision) }
  /// See `TransactionJournal.snapshots`.
  package func snapshots() throws(JournalError) -> [JournalSnapshot] { try base.snapshots() }

  /// See `TransactionJournal.writeSnapshot`.
  package func writeSnapshot(
    at revision: UInt64, milliseconds: Int64, _ next: () throws -> [UInt8]?
  ) throws(JournalError) {
    try base.writeSnapshot(at: revision, milliseconds: milliseconds, next)
  }

  /// See `TransactionJournal.readSnapshot`.
  package func readSnapshot(_ snapshot: JournalSnapshot, _ receive: ([UInt8]) throws -> Void) throws {
    try base.readSnapshot(snapshot, receive)
  }

  /// See `TransactionJournal.compact`.
  package func compact(upTo revision: UInt64) throws(JournalError) { try base.compact(upTo: revision) }

  /// See `TransactionJournal.rebase`.
  package func rebase(
    to revision: UInt64, schema: String, milliseconds: Int64, _ next: () throws -> [UInt8]?
  ) throws(JournalError) {
    try base.rebase(to: revision, schema: schema, milliseconds: milliseconds, next)
  }

  /// See `TransactionJournal.revocations`.
  package func revocations() throws(JournalError) -> [Revocation] { try base.revocations() }

  /// See `TransactionJournal.setRevocation`.
  package func setRevocation(of subject: String, to milliseconds: Int64?) throws(JournalError) {
    try base.setRevocation(of: subject, to: milliseconds)
  }

  /// See `TransactionJournal.recover`.
  package func recover() throws(JournalError) { try base.recover() }
  /// See `TransactionJournal.checkPresence`.
  package func checkPresence() throws(JournalError) { try base.checkPresence() }
  /// See `TransactionJournal.probe`.
  package func probe(bytes: Int) throws(JournalError) { try base.probe(bytes: bytes) }
  /// See `TransactionJournal.maintain`.
  package func maintain() { base.maintain() }
  /// See `TransactionJournal.close`.
  package func close() { base.close() }
  /// See `SharedJournal.confirm`.
  package func confirm(_ revision: UInt64) throws(JournalError) { try base.confirm(revision) }
  /// See `SharedJournal.refresh`.
  package func refresh() throws(JournalError) { try base.refresh() }

  /// See `SharedJournal.waitForOthers`.
  package func waitForOthers(beyond revision: UInt64, for time: Duration) throws(JournalError) {
    try base.waitForOthers(beyond: revision, for: time)
  }

  /// See `SharedJournal.nodes`.
  package func nodes() throws(JournalError) -> [String] { try base.nodes() }
  /// See `SharedJournal.vouch`.
  package func vouch(for nodes: [String]) { base.vouch(for: nodes) }

  /// See `SharedJournal.recentRecords`.
  package func recentRecords(after revision: UInt64, limit: Int, bytes: Int) -> [JournalRecord]? {
    base.recentRecords(after: revision, limit: limit, bytes: bytes)
  }

  /// See `SharedJournal.handed`.
  package func handed(after revision: UInt64, _ digest: JournalDigest, bytes: Int) -> HandedRecords? {
    base.handed(after: revision, digest, bytes: bytes)
  }

  /// See `SharedJournal.take`.
  package func take(_ handed: HandedRecords) -> Bool { base.take(handed) }
  /// See `SharedJournal.isMissing`.
  package func isMissing() throws(JournalError) -> Bool { try base.isMissing() }
  /// See `SharedJournal.end`.
  package func end(_ end: JournalEnd) { base.end(end) }
  /// See `SharedJournal.whenOver`.
  package func whenOver(_ action: @escaping @Sendable (JournalEnd) -> Void) { base.whenOver(action) }
}
