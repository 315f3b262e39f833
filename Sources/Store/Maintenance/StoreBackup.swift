package import KeyValueModel

/// Copies the acknowledged state of a store to a file, whether or not a server runs. Changes nothing in the store.
package struct StoreBackup: Sendable {
  /// The epoch and the schema in the file.
  package let identity: JournalIdentity
  /// The revision of the state.
  package let revision: Revision
  /// The number of objects in the state.
  package let objects: Int
  /// Remarks for the operator about snapshots that could not be read.
  package let remarks: [String]

  /// The maximum number of attempts if a compaction removes the data being read.
  private static let attempts = 5

  /// Writes the state at the last acknowledged revision of a directory's store to a file, which appears once it is
  /// complete. `milliseconds`, since 1970, is the time recorded in the file. Throws if the store cannot be read or the
  /// file cannot be written.
  package static func write(
    directory: String, to path: String, milliseconds: Int64
  ) throws(StoreError) -> StoreBackup {
    var bases: Set<UInt64> = []
    while true {
      // Read before the journal is opened, so that the journal has everything up to this revision.
      let acknowledged = SQLiteJournal.acknowledgedRevision(inDirectory: directory)
      let journal = try StoreError.of { () throws(JournalError) in try SQLiteJournal(reading: directory) }
      defer { journal.close() }
      do throws(StoreError) {
        return try copy(journal, upTo: acknowledged, to: path, milliseconds: milliseconds)
      } catch {
        // A compaction shows as a different base at the next attempt.
        let isNew = bases.insert(journal.bounds.base).inserted
        guard isNew, bases.count < attempts, case .journal = error else { throw error }
      }
    }
  }

  private static func copy(
    _ journal: SQLiteJournal, upTo acknowledged: UInt64?, to path: String, milliseconds: Int64
  ) throws(StoreError) -> StoreBackup {
    let bounds = journal.bounds
    // Records after the acknowledged one may not be on the disk yet. After a power failure the mark may be older than
    // the base.
    let revision = acknowledged.map { min(max($0, bounds.base), bounds.last) } ?? bounds.last
    let schema = try Schema(stored: journal.identity)
    let outcome = try Recovery(journal, schema: schema, limits: .withoutHistory).run(through: revision)
    try StoreError.of { () throws(JournalError) in
      var encoder = StateEncoder(outcome.model.state)
      try journal.writeBackup(at: revision, milliseconds: milliseconds, to: path) { encoder.nextBlock() }
    }
    return StoreBackup(
      identity: journal.identity, revision: revision, objects: outcome.model.state.count, remarks: outcome.remarks)
  }
}

/// Creates a store from a backup.
package struct StoreRestoration: Sendable {
  /// The header of the backup.
  package let source: SnapshotFile.Header
  /// The epoch of the new store.
  package let epoch: String
  /// The number of objects in the store.
  package let objects: Int
  /// The directory to which the previous store was moved; nil if there was none.
  package let movedAside: String?

  /// Reads a backup completely, and creates the store of a directory from it only if it is intact; `replacing` moves
  /// the previous store away. `epoch` is that of the new store; `milliseconds`, since 1970, becomes part of the name of
  /// the directory to which the previous store is moved.
  ///
  /// If `schema` is given, it must be equivalent to the backup's: a different schema needs a migration.
  package static func run(
    _ path: String, to directory: String, schema: String?, epoch: String, replacing: Bool, milliseconds: Int64
  ) throws(StoreError) -> StoreRestoration {
    let file = try StoreError.of { () throws(JournalError) in try SnapshotFile(path: path) }
    let header = file.header
    if let schema, Schema.fingerprint(ofYAML: schema) != Schema.fingerprint(ofYAML: header.schema) {
      throw .schema(["the backup has another schema; restore it as it is, then migrate it"])
    }
    let identity = JournalIdentity(epoch: header.epoch, schema: header.schema)
    let objects = try count(file, path, Schema(stored: identity))
    let aside = try StoreError.of { () throws(JournalError) in
      try JournalInstallation.restore(
        file, to: directory, epoch: epoch, replacing: replacing, milliseconds: milliseconds)
    }
    return StoreRestoration(source: header, epoch: epoch, objects: objects, movedAside: aside)
  }

  /// Reads every object and returns their number.
  private static func count(_ file: SnapshotFile, _ path: String, _ schema: Schema) throws(StoreError) -> Int {
    var decoder = SnapshotDecoder(schema: schema)
    do {
      try file.read { try decoder.decode($0) }
      return try decoder.finish().count
    } catch let error as JournalError {
      throw .journal(error)
    } catch {
      throw .journal(.damaged(place: path, reason: "\(error)"))
    }
  }
}
