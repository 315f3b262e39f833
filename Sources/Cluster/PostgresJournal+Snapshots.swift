package import Store

extension PostgresJournal {
  private var kept: PostgresSnapshots { PostgresSnapshots(journal: self) }

  /// See `TransactionJournal.snapshots()`.
  package func snapshots() throws(JournalError) -> [JournalSnapshot] { try kept.snapshots() }

  /// See `TransactionJournal.writeSnapshot(at:milliseconds:_:)`.
  package func writeSnapshot(
    at revision: UInt64, milliseconds: Int64, _ next: () throws -> [UInt8]?
  ) throws(JournalError) {
    try kept.writeSnapshot(at: revision, milliseconds: milliseconds, next)
  }

  /// See `TransactionJournal.readSnapshot(_:_:)`.
  package func readSnapshot(_ snapshot: JournalSnapshot, _ receive: ([UInt8]) throws -> Void) throws {
    try kept.readSnapshot(snapshot, receive)
  }

  /// See `TransactionJournal.compact(upTo:)`.
  package func compact(upTo revision: UInt64) throws(JournalError) { try kept.compact(upTo: revision) }

  /// See `TransactionJournal.rebase(to:schema:milliseconds:_:)`. Only where no other node has appended meanwhile.
  package func rebase(
    to revision: UInt64, schema: String, milliseconds: Int64, _ next: () throws -> [UInt8]?
  ) throws(JournalError) {
    try kept.rebase(to: revision, schema: schema, milliseconds: milliseconds, next)
  }
}
