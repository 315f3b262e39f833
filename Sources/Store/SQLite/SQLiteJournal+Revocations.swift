import Support

/// Revocations: a table of the database.
extension SQLiteJournal {
  /// See `TransactionJournal.revocations()`.
  package func revocations() throws(JournalError) -> [Revocation] {
    try state.withLock { $0.database }.revocations()
  }

  /// See `TransactionJournal.setRevocation(of:to:)`.
  package func setRevocation(of subject: String, to milliseconds: Int64?) throws(JournalError) {
    try maintenance.withLock { _ throws(JournalError) in
      let (database, _, _) = try usable()
      let files = files
      try noting { () throws(JournalError) in
        try requireLog(of: database)
        try database.setRevocation(of: subject, to: milliseconds)
        // What was written into files that are gone is lost.
        try files.require()
      }
      state.withLock { $0.logPages += 4 }
      flusher?.note()
    }
  }
}
