package import KeyValueModel

/// Copies the acknowledged state of a store into a file, while a server runs or not. Changes nothing in the store.
package struct StoreBackup: Sendable {
  /// What the file has.
  package let identity: JournalIdentity
  /// The revision of the state.
  package let revision: Revision
  /// The objects in it.
  package let objects: Int
  /// Remarks for the operator: snapshots that could not be read.
  package let remarks: [String]

  /// How often it is begun, where a compaction takes away what it reads.
  private static let attempts = 5

  /// Writes the state at the last acknowledged revision of a directory's store into a file, which is there once it is
  /// whole. `milliseconds`, since 1970, is the time that the file says. Throws where the store cannot be read, or the
  /// file not be written.
  package static func write(
    directory: String, to path: String, milliseconds: Int64, report: @escaping (RecoveryProgress) -> Void = { _ in }
  ) throws(StoreError) -> StoreBackup {
    var bases: Set<UInt64> = []
    while true {
      // Before the journal is opened, so that it has everything up to there.
      let acknowledged = SQLiteJournal.acknowledgedRevision(inDirectory: directory)
      let journal = try StoreError.of { () throws(JournalError) in try SQLiteJournal(reading: directory) }
      defer { journal.close() }
      do throws(StoreError) {
        return try copy(journal, upTo: acknowledged, to: path, milliseconds: milliseconds, report)
      } catch {
        // A compaction shows in a base that is another the next time.
        let isNew = bases.insert(journal.bounds.base).inserted
        guard isNew, bases.count < attempts, case .journal = error else { throw error }
      }
    }
  }

  private static func copy(
    _ journal: SQLiteJournal, upTo acknowledged: UInt64?, to path: String, milliseconds: Int64,
    _ report: @escaping (RecoveryProgress) -> Void
  ) throws(StoreError) -> StoreBackup {
    let bounds = journal.bounds
    // What comes behind may not be on the disk yet. After a power failure the mark may be from before the base.
    let revision = acknowledged.map { min(max($0, bounds.base), bounds.last) } ?? bounds.last
    let schema = try Schema(stored: journal.identity)
    let outcome = try Recovery(journal, schema: schema, limits: .withoutHistory, report: report).run(through: revision)
    try StoreError.of { () throws(JournalError) in
      var encoder = StateEncoder(outcome.model.state)
      try journal.writeBackup(at: revision, milliseconds: milliseconds, to: path) { encoder.nextBlock() }
    }
    return StoreBackup(
      identity: journal.identity, revision: revision, objects: outcome.model.state.count, remarks: outcome.remarks)
  }
}
