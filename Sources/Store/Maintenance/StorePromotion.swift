package import KeyValueModel

/// Makes the store of a follower one that takes writes.
package struct StorePromotion: Sendable {
  /// The node that it followed.
  package let leader: String
  /// The last revision that it has.
  package let revision: Revision
  /// Its epoch before.
  package let previousEpoch: String
  /// Its epoch now.
  package let epoch: String

  /// Promotes the store of a directory, which no process may be using. It keeps its records, and with them what is
  /// known of idempotency keys. Without `newEpoch` it keeps its epoch: then its next revisions are those of the node
  /// that it followed, which must never take writes again. Throws where the store follows no node, is in use or is
  /// damaged; then nothing was changed. `milliseconds` are since 1970.
  package static func run(
    directory: String, milliseconds: Int64, newEpoch: (() -> String)?
  ) throws(StoreError) -> StorePromotion {
    try StoreError.of { () throws(JournalError) in
      guard let leader = try FollowerMark.read(inDirectory: directory) else {
        throw .invalid("\(directory): this store follows no node; it takes writes already")
      }
      guard JournalInstallation.isThere(inDirectory: directory) else {
        throw .unusable("\(directory): the store has not had a copy of \(leader) yet")
      }
      // Opened once, so that what was written last is in its place and known to be whole.
      let journal = try SQLiteJournal(directory: directory, durability: .synced) {
        JournalIdentity(epoch: "", schema: "")
      }
      let (revision, before) = (journal.bounds.last, journal.identity.epoch)
      journal.close()
      var epoch = before
      if let newEpoch {
        let repair = try SQLiteJournal.repair(
          directory: directory, until: revision, milliseconds: milliseconds, isEpochNew: true, newEpoch: newEpoch)
        epoch = repair.identity.epoch
        try JournalInstallation.discard(repair.movedAside)
      }
      try FollowerMark.remove(inDirectory: directory)
      return StorePromotion(leader: leader, revision: revision, previousEpoch: before, epoch: epoch)
    }
  }
}
