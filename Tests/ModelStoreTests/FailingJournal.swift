import Journal
import Locking

/// A journal whose disk fails when it is told to.
final class FailingJournal: TransactionJournal {
  struct Faults {
    /// What the next appends throw.
    var append: JournalError?
    /// What reading back throws.
    var recover: JournalError?
    var recoveries = 0
    var syncs = 0
    /// Nothing is appended before this has been called.
    var hold: (@Sendable () -> Void)?
  }

  let base: any TransactionJournal
  let faults = Locked(Faults())

  init(_ base: any TransactionJournal = MemoryJournal(identity: JournalIdentity(epoch: "test", schema: ""))) {
    self.base = base
  }

  var identity: JournalIdentity { base.identity }
  var bounds: JournalBounds { base.bounds }
  var isVolatile: Bool { base.isVolatile }

  func append(_ records: [JournalRecord], after expected: UInt64) throws(JournalError) {
    faults.withLock { $0.hold }?()
    if let error = faults.withLock({ $0.append }) { throw error }
    try base.append(records, after: expected)
    faults.withLock { $0.syncs += 1 }
  }

  func records(
    after revision: UInt64, limit: Int, bytes: Int, waiting: Duration
  ) throws(JournalError) -> [JournalRecord] {
    try base.records(after: revision, limit: limit, bytes: bytes, waiting: waiting)
  }

  func snapshots() throws(JournalError) -> [JournalSnapshot] { try base.snapshots() }

  func writeSnapshot(
    at revision: UInt64, milliseconds: Int64, _ next: () throws -> [UInt8]?
  ) throws(JournalError) {
    try base.writeSnapshot(at: revision, milliseconds: milliseconds, next)
  }

  func readSnapshot(_ snapshot: JournalSnapshot, _ receive: ([UInt8]) throws -> Void) throws {
    try base.readSnapshot(snapshot, receive)
  }

  func compact(upTo revision: UInt64) throws(JournalError) { try base.compact(upTo: revision) }

  func rebase(
    to revision: UInt64, schema: String, milliseconds: Int64, _ next: () throws -> [UInt8]?
  ) throws(JournalError) {
    try base.rebase(to: revision, schema: schema, milliseconds: milliseconds, next)
  }

  func recover() throws(JournalError) {
    let error = faults.withLock { faults -> JournalError? in
      faults.recoveries += 1
      if faults.recover == nil { faults.append = nil }
      return faults.recover
    }
    if let error { throw error }
  }

  func maintain() {}
  func close() {}
}
