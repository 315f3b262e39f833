package import Store
import Support

extension PostgresJournal {
  /// The newest record that this node has appended, read or been handed, with its digest.
  package var newest: (revision: UInt64, digest: JournalDigest) { state.withLock { $0.known } }

  /// See `SharedJournal.handed(after:_:bytes:)`.
  package func handed(after revision: UInt64, _ digest: JournalDigest, bytes: Int) -> HandedRecords? {
    state.withLock { $0.handed(after: revision, digest, bytes: bytes) }
  }

  /// See `SharedJournal.take(_:)`. From then on the database must never be without them: the other node has its word
  /// for each.
  package func take(_ handed: HandedRecords) -> Bool {
    guard (try? requireUse()) != nil else { return false }
    let known = newest
    // The digests are made without the lock.
    guard let entries = handed.following(on: known.revision, known.digest),
      state.withLock({ $0.take(entries, after: known.revision, pen: handed.pen) })
    else { return false }
    arrivals.announce(entries[entries.count - 1].record.revision)
    return true
  }
}
