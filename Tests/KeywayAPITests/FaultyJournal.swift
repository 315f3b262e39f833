import Journal
import Locking

/// A journal in memory that cannot always be read.
final class FaultyJournal: TransactionJournal {
  struct Faults {
    /// A record that is not what was written.
    var damaged: UInt64?
    /// How often reading fails from now on.
    var refusals = 0
  }

  let faults = Locked(Faults())
  private let journal = MemoryJournal(identity: JournalIdentity(epoch: "faulty", schema: ""))

  var identity: JournalIdentity { journal.identity }
  var bounds: JournalBounds { journal.bounds }
  var isVolatile: Bool { journal.isVolatile }

  func append(_ records: [JournalRecord], after expected: UInt64) throws(JournalError) {
    try journal.append(records, after: expected)
  }

  func records(
    after revision: UInt64, limit: Int, bytes: Int, waiting: Duration
  ) throws(JournalError) -> [JournalRecord] {
    let (damaged, isRefused) = faults.withLock { faults in
      defer { faults.refusals = max(0, faults.refusals - 1) }
      return (faults.damaged, faults.refusals > 0)
    }
    if isRefused { throw .refused("the disk does not answer") }
    let records = try journal.records(after: revision, limit: limit, bytes: bytes, waiting: waiting)
    guard let damaged, revision < damaged else { return records }
    if revision + 1 == damaged, !records.isEmpty {
      throw .damaged(place: "revision \(damaged)", reason: "it is not whole")
    }
    return Array(records.prefix { $0.revision < damaged })
  }

  func snapshots() throws(JournalError) -> [JournalSnapshot] { journal.snapshots() }

  func writeSnapshot(
    at revision: UInt64, milliseconds: Int64, _ next: () throws -> [UInt8]?
  ) throws(JournalError) {
    try journal.writeSnapshot(at: revision, milliseconds: milliseconds, next)
  }

  func readSnapshot(_ snapshot: JournalSnapshot, _ receive: ([UInt8]) throws -> Void) throws {
    try journal.readSnapshot(snapshot, receive)
  }

  func compact(upTo revision: UInt64) throws(JournalError) { try journal.compact(upTo: revision) }

  func rebase(
    to revision: UInt64, schema: String, milliseconds: Int64, _ next: () throws -> [UInt8]?
  ) throws(JournalError) {
    try journal.rebase(to: revision, schema: schema, milliseconds: milliseconds, next)
  }

  func recover() throws(JournalError) { journal.recover() }
  func maintain() { journal.maintain() }
  func close() { journal.close() }
}
