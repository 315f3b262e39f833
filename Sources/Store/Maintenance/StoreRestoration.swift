import KeyValueModel

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
