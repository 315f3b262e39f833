/// A journal that this node shares with others, together with this node's cache of it. Writes go to the journal alone;
/// the cache follows on its own. Reads are served from the newest records, then from the cache, and only then from the
/// shared storage.
package final class CachedJournal: ForwardingSharedJournal {
  /// The shared journal.
  package let sharedBase: any SharedJournal
  private let kept: JournalCache

  /// Creates a journal with a cache, which either has the same history and is not ahead, or is still to be made.
  package init(_ origin: any SharedJournal, _ cache: JournalCache) {
    (sharedBase, kept) = (origin, cache)
  }

  deinit {
    close()
  }

  /// This node's cache of the journal.
  package var cache: JournalCache? { kept }

  /// See `SharedJournal.keepCache(_:)`.
  package func keepCache(_ whenMade: @escaping @Sendable (SQLiteJournal) -> Void) { kept.follow(sharedBase, whenMade) }

  /// The directory of the cache; nil while there is no cache.
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
    // The cache may lack the newest records.
    if found.count < limit, size < bytes, newest < bounds.last {
      found += try sharedBase.records(after: newest, limit: limit - found.count, bytes: bytes - size, waiting: .zero)
    }
    return found
  }

  /// Returns records of the cache; nil if they are to be read from the shared journal.
  private func keptRecords(after revision: UInt64, limit: Int, bytes: Int) -> [JournalRecord]? {
    guard let journal = kept.journal, revision < journal.bounds.last, revision >= sharedBase.bounds.base,
      sharedBase.recentRecords(after: revision, limit: 1, bytes: 1) == nil
    else { return nil }
    return try? journal.records(after: revision, limit: limit, bytes: bytes, waiting: .zero)
  }

  // MARK: Revocations

  /// See `TransactionJournal.revocations()`. Falls back to the revocations of the cache if the journal does not
  /// respond.
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
