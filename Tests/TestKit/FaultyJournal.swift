package import Store
package import Support

/// A journal whose disk fails as `faults` says.
package final class FaultyJournal: ForwardingJournal {
  /// What fails, and how often the disk was used.
  package struct Faults: Sendable {
    /// What the next appends throw.
    package var append: JournalError?
    /// What reading back throws.
    package var recover: JournalError?
    /// How often the journal was read back.
    package var recoveries = 0
    /// How many batches were appended.
    package var syncs = 0
    /// Nothing is appended before this has been called.
    package var hold: (@Sendable () -> Void)?
    /// A record that is not what was written.
    package var damaged: UInt64?
    /// How often reading fails from now on.
    package var refusals = 0
  }

  /// The journal without faults.
  package let base: any TransactionJournal
  /// What fails from now on.
  package let faults = Locked(Faults())

  /// A journal without faults over another, by default one in memory of epoch `test`.
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

/// A journal that others append to right before each append of this node, as `overtaking` says.
package final class OvertakenJournal: ForwardingSharedJournal {
  /// What others do before each append.
  package struct Overtaking: Sendable {
    /// Has another node append.
    package var append: (@Sendable () -> Void)?
    /// How often it was called.
    package var count = 0
    /// Who is said to have appended last; as the journal says, where it is nil.
    package var pen: String?
  }

  /// The journal that is shared.
  package let sharedBase: any SharedJournal
  /// What others do from now on.
  package let overtaking = Locked(Overtaking())

  /// A journal over another, which nobody is made to append to before `overtaking` says so.
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

  /// Nobody before another node has overtaken this one: it appends by itself until then.
  package var pen: String {
    let (pen, count) = overtaking.withLock { ($0.pen, $0.count) }
    return pen ?? (count == 0 ? "" : sharedBase.pen)
  }
}
