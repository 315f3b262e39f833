/// A journal that this node shares with others, and what it keeps of it. What is written goes to the journal alone; the
/// cache follows by itself. What is read comes from the newest records, then from the cache, and only then from where
/// the journal is kept.
package final class CachedJournal: ForwardingSharedJournal {
  /// The journal that is shared.
  package let sharedBase: any SharedJournal
  private let kept: JournalCache

  /// A journal and a cache of it, which is of the same history and not further, or is to be made.
  package init(_ origin: any SharedJournal, _ cache: JournalCache) {
    (sharedBase, kept) = (origin, cache)
  }

  deinit {
    close()
  }

  /// What this node keeps of it.
  package var cache: JournalCache? { kept }

  /// See `SharedJournal.keepCache(_:)`.
  package func keepCache(_ whenMade: @escaping @Sendable (SQLiteJournal) -> Void) { kept.follow(sharedBase, whenMade) }

  /// Where the cache is.
  package var directory: String? { kept.journal?.directory }

  // MARK: Records

  /// See `TransactionJournal.records(after:limit:bytes:waiting:)`.
  package func records(
    after revision: UInt64, limit: Int, bytes: Int, waiting: Duration
  ) throws(JournalError) -> [JournalRecord] {
    guard var found = keptRecords(after: revision, limit: limit, bytes: bytes), let newest = found.last?.revision else {
      return try sharedBase.records(after: revision, limit: limit, bytes: bytes, waiting: waiting)
    }
    let size = found.reduce(0) { $0 + $1.body.count }
    // The cache may lack the end.
    if found.count < limit, size < bytes, newest < bounds.last {
      found += try sharedBase.records(after: newest, limit: limit - found.count, bytes: bytes - size, waiting: .zero)
    }
    return found
  }

  /// Those of the cache, where it is to be asked.
  private func keptRecords(after revision: UInt64, limit: Int, bytes: Int) -> [JournalRecord]? {
    guard let journal = kept.journal, revision < journal.bounds.last, revision >= sharedBase.bounds.base,
      sharedBase.recentRecords(after: revision, limit: 1, bytes: 1) == nil
    else { return nil }
    return try? journal.records(after: revision, limit: limit, bytes: bytes, waiting: .zero)
  }

  // MARK: Revocations

  /// See `TransactionJournal.revocations()`. Where the journal does not answer, those of the cache.
  package func revocations() throws(JournalError) -> [Revocation] {
    let found: [Revocation]
    do throws(JournalError) {
      found = try sharedBase.revocations()
    } catch {
      guard case .refused = error, let journal = kept.journal else { throw error }
      return try journal.revocations()
    }
    try? kept.keep(found)
    return found
  }

  /// See `TransactionJournal.setRevocation(of:to:)`.
  package func setRevocation(of subject: String, to milliseconds: Int64?) throws(JournalError) {
    try sharedBase.setRevocation(of: subject, to: milliseconds)
    try? kept.journal?.setRevocation(of: subject, to: milliseconds)
  }

  /// See `TransactionJournal.close()`.
  package func close() {
    sharedBase.close()
    kept.stop(sharedBase)
  }
}
