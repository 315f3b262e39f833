package import Store
package import Support

/// A journal whose disk fails as `faults` specifies.
package final class FaultyJournal: ForwardingJournal {
  /// The faults, and the counts of disk operations.
  package struct Faults: Sendable {
    /// The error of the next appends; nil for none.
    package var append: JournalError?
    /// The error of recovery; nil for none.
    package var recover: JournalError?
    /// The number of recoveries.
    package var recoveries = 0
    /// The number of appended batches.
    package var syncs = 0
    /// A closure that is called before each append.
    package var hold: (@Sendable () -> Void)?
    /// The revision of a record that is read back damaged.
    package var damaged: UInt64?
    /// The number of following reads that fail.
    package var refusals = 0
  }

  /// The journal without faults.
  package let base: any TransactionJournal
  /// The present faults.
  package let faults = Locked(Faults())

  /// Creates a journal without faults over another, by default one in memory of epoch `test`.
  package init(_ base: any TransactionJournal = MemoryJournal(identity: JournalIdentity(epoch: "test", schema: ""))) {
    self.base = base
  }

  /// See `TransactionJournal.append`.
  package func append(_ records: [JournalRecord], after expected: UInt64) throws(JournalError) {
    faults.withLock { $0.hold }?()
    if let error = faults.withLock({ $0.append }) { throw error }
    try base.append(records, after: expected)
    faults.withLock { $0.syncs += 1 }
  }

  /// See `TransactionJournal.records`.
  package func records(
    after revision: UInt64, limit: Int, bytes: Int, waiting: Duration
  ) throws(JournalError) -> [JournalRecord] {
    let (damaged, isRefused) = faults.withLock { faults in
      defer { faults.refusals = max(0, faults.refusals - 1) }
      return (faults.damaged, faults.refusals > 0)
    }
    if isRefused { throw .refused("the disk does not answer") }
    let records = try base.records(after: revision, limit: limit, bytes: bytes, waiting: waiting)
    guard let damaged, revision < damaged else { return records }
    if revision + 1 == damaged, !records.isEmpty {
      throw .damaged(place: "revision \(damaged)", reason: "it is not whole")
    }
    return Array(records.prefix { $0.revision < damaged })
  }

  /// See `TransactionJournal.setRevocation`: fails as an append does.
  package func setRevocation(of subject: String, to milliseconds: Int64?) throws(JournalError) {
    if let error = faults.withLock({ $0.append }) { throw error }
    try base.setRevocation(of: subject, to: milliseconds)
  }

  /// See `TransactionJournal.recover`.
  package func recover() throws(JournalError) {
    let error = faults.withLock { faults -> JournalError? in
      faults.recoveries += 1
      if faults.recover == nil { faults.append = nil }
      return faults.recover
    }
    if let error { throw error }
    try base.recover()
  }

  /// See `TransactionJournal.probe`: fails as an append does.
  package func probe(bytes: Int) throws(JournalError) {
    if case .untrusted? = faults.withLock({ $0.append }) { return try recover() }
    if let error = faults.withLock({ $0.append }) { throw error }
    try base.probe(bytes: bytes)
  }
}

/// A journal that others append to right before each append of this node, as `overtaking` specifies.
package final class OvertakenJournal: ForwardingSharedJournal {
  /// The appends of others before each append of this node.
  package struct Overtaking: Sendable {
    /// A closure in which another node appends; nil for none.
    package var append: (@Sendable () -> Void)?
    /// The number of its calls.
    package var count = 0
    /// The node that is reported to have appended last; nil for the one that the journal reports.
    package var pen: String?
  }

  /// The shared journal.
  package let sharedBase: any SharedJournal
  /// The present appends of others.
  package let overtaking = Locked(Overtaking())

  /// Creates a journal over another, to which others do not append until `overtaking` is set.
  package init(_ base: any SharedJournal) { sharedBase = base }

  /// See `TransactionJournal.append`.
  package func append(_ records: [JournalRecord], after expected: UInt64) throws(JournalError) {
    let append = overtaking.withLock { overtaking in
      if overtaking.append != nil { overtaking.count += 1 }
      return overtaking.append
    }
    append?()
    try sharedBase.append(records, after: expected)
  }

  /// The node that appended last, or none until another node has overtaken this one, which appends by itself before
  /// that.
  package var pen: String {
    let (pen, count) = overtaking.withLock { ($0.pen, $0.count) }
    return pen ?? (count == 0 ? "" : sharedBase.pen)
  }
}
