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
    directory: String, to path: String, milliseconds: Int64
  ) throws(StoreError) -> StoreBackup {
    var bases: Set<UInt64> = []
    while true {
      // Before the journal is opened, so that it has everything up to there.
      let acknowledged = SQLiteJournal.acknowledgedRevision(inDirectory: directory)
      let journal = try StoreError.of { () throws(JournalError) in try SQLiteJournal(reading: directory) }
      defer { journal.close() }
      do throws(StoreError) {
        return try copy(journal, upTo: acknowledged, to: path, milliseconds: milliseconds)
      } catch {
        // A compaction shows in a base that is another the next time.
        let isNew = bases.insert(journal.bounds.base).inserted
        guard isNew, bases.count < attempts, case .journal = error else { throw error }
      }
    }
  }

  private static func copy(
    _ journal: SQLiteJournal, upTo acknowledged: UInt64?, to path: String, milliseconds: Int64
  ) throws(StoreError) -> StoreBackup {
    let bounds = journal.bounds
    // What comes behind may not be on the disk yet. After a power failure the mark may be from before the base.
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

/// Makes a store of a backup.
package struct StoreRestoration: Sendable {
  /// What the backup says of itself.
  package let source: SnapshotFile.Header
  /// The epoch of the new store.
  package let epoch: String
  /// The objects in it.
  package let objects: Int
  /// Where the store is now that was there before; nil where there was none.
  package let movedAside: String?

  /// Reads a backup through, and only where it is whole makes the store of a directory from it; `replacing` moves away
  /// what is there. `epoch` is that of the new store, `milliseconds`, since 1970, goes into the name of what is moved
  /// away.
  ///
  /// Where `schema` is given, it has to say the same as the backup's: other schemas are a migration's business.
  package static func run(
    _ path: String, to directory: String, schema: String?, epoch: String, replacing: Bool, milliseconds: Int64
  ) throws(StoreError) -> StoreRestoration {
    let file = try StoreError.of { () throws(JournalError) in try SnapshotFile(path: path) }
    let header = file.header
    if let schema, Schema.fingerprint(ofYAML: schema) != Schema.fingerprint(ofYAML: header.schema) {
      throw .schema(["the backup was made under another schema; restore it as it is, and migrate it then"])
    }
    let identity = JournalIdentity(epoch: header.epoch, schema: header.schema)
    let objects = try count(file, path, Schema(stored: identity))
    let aside = try StoreError.of { () throws(JournalError) in
      try JournalInstallation.restore(
        file, to: directory, epoch: epoch, replacing: replacing, milliseconds: milliseconds)
    }
    return StoreRestoration(source: header, epoch: epoch, objects: objects, movedAside: aside)
  }

  /// Reads every object; gives how many there are.
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
