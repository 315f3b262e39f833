internal import Journal
internal import KeywayAPI

extension Settings {
  /// What the journal of a store is opened as.
  struct OpenedJournal {
    let journal: any TransactionJournal
    /// What was found on opening that somebody should know.
    let remarks: [String]
  }

  /// Opens the journal of the store that the settings name, or makes one for objects of the schema with that text.
  /// Throws a `CommandFailure`.
  func openJournal(schema: String) throws -> OpenedJournal {
    let identity = JournalIdentity(epoch: KeywayServer.makeEpoch(), schema: schema)
    guard store != "memory" else { return OpenedJournal(journal: MemoryJournal(identity: identity), remarks: []) }
    do throws(JournalError) {
      let journal = try SQLiteJournal(
        directory: store,
        durability: durability == "relaxed" ? .relaxed(milliseconds: durabilityWindow) : .synced
      ) { identity }
      return OpenedJournal(journal: journal, remarks: journal.remarks)
    } catch {
      throw CommandFailure(StoreAdvice.text(error, directory: store))
    }
  }
}
