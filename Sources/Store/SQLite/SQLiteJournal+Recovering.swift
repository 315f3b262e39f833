import Glibc
import Support

/// After a disk has failed.
extension SQLiteJournal {
  /// Closes the database and opens it anew, has the kernel forget what it remembers of the files, reads every record
  /// back, and takes away what was written and never acknowledged.
  package func recover() throws(JournalError) {
    try maintenance.withLock { _ throws(JournalError) in try readBack() }
  }

  private func readBack() throws(JournalError) {
    let (old, last, tip, isClosed) = state.withLock { ($0.database, $0.last, $0.tip, $0.isClosed) }
    var head = state.withLock { $0.head }
    guard !isClosed else { throw .unusable("the journal is closed") }
    // Opened under a name that is gone, it would be made anew, and empty. A log that is gone is another matter: SQLite
    // still has it, and can put what is in it in the database.
    try files.requireDatabase()
    if (try? files.require()) == nil { try old.settle() }
    old.close()
    for path in [layout.database, layout.databaseLog] { SystemFile.dropCache(of: path) }
    let database = try JournalDatabase(layout.database, durability == .synced ? .synced : .relaxed)
    state.withLock { ($0.database, $0.files) = (database, StoreFiles(layout, lock)) }
    let isLogInPlace: Bool
    do throws(JournalError) {
      // A compaction whose sync failed may be there all the same: then the records have to lead from its base to the
      // end.
      guard let found = try database.head(), found.epoch == head.epoch, found.schema == head.schema,
        (head.base...last).contains(found.base)
      else {
        throw .damaged(place: layout.database, reason: "the head is not what was written")
      }
      head = found
      var link = head.baseDigest
      _ = try database.read(after: head.base, link, through: last) { _, digest in
        link = digest
        return true
      }
      guard link == tip else {
        throw .damaged(place: "\(layout.database), revision \(last)", reason: "it is not what was acknowledged")
      }
      // Also shows that the disk takes and syncs a write. In one transaction with what the database says of its log: a
      // second one would not come to pass where the sync of the first fails.
      try database.write(head, removingAfter: last, isLogNeeded: true)
      isLogInPlace = try database.checkpoint()
    } catch {
      state.withLock { $0.untrustedReason = error.description }
      throw error
    }
    state.withLock { state in
      state.head = head
      state.untrustedReason = nil
      state.isLogRequired = isLogInPlace
      state.logPages = 0
    }
  }

  /// See `TransactionJournal.checkPresence()`.
  package func checkPresence() throws(JournalError) {
    guard let (database, _, _) = try? usable() else { return }
    try noting { () throws(JournalError) in try files.require() }
    guard state.withLock({ $0.isLogRequired }) == false, (try? database.checkpoint()) == true else { return }
    state.withLock { $0.isLogRequired = true }
  }

  /// See `TransactionJournal.probe(bytes:)`.
  package func probe(bytes: Int) throws(JournalError) {
    if state.withLock({ $0.untrustedReason != nil }) { try recover() }
    try maintenance.withLock { _ throws(JournalError) in
      let (database, _, _) = try usable()
      try files.requireRoom(bytes)
      let head = state.withLock { $0.head }
      try noting { () throws(JournalError) in
        try files.require()
        try requireLog(of: database)
        try database.write(head)
      }
    }
  }
}
