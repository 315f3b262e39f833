import Glibc
import Support

/// Copies of a state for safekeeping.
extension SQLiteJournal {
  /// Whether a directory has a journal, or what is left of one.
  package static func exists(inDirectory directory: String) -> Bool {
    let layout = JournalLayout(directory: directory)
    return SystemFile.exists(layout.database) || SystemFile.exists(layout.mark)
  }

  /// The last revision of a directory's journal that is known to be on the disk; nil where that is not known. Ask
  /// before the journal is opened to be read: then the journal has it.
  package static func acknowledgedRevision(inDirectory directory: String) -> UInt64? {
    let layout = JournalLayout(directory: directory)
    for _ in 0..<3 {
      if let file = try? SystemFile(layout.mark, O_RDONLY), let mark = try? DurableWatermark(contentsOf: file) {
        return mark.revision
      }
      // A server may write it just now.
      usleep(1000)
    }
    return nil
  }

  /// Writes the state at a revision that the journal holds into a file of its own, as `writeSnapshot` does. Changes
  /// nothing in the journal, and can be used on one that was opened to be read.
  package func writeBackup(
    at revision: UInt64, milliseconds: Int64, to path: String, _ next: () throws -> [UInt8]?
  ) throws(JournalError) {
    let (database, head, last) = state.withLock { ($0.database, $0.head, $0.last) }
    let digest = try database.digest(at: revision, head)
    guard revision <= last, let digest else { throw .invalid("the journal does not hold revision \(revision)") }
    let header = SnapshotFile.Header(
      epoch: head.epoch, revision: revision, digest: digest, milliseconds: milliseconds, schema: head.schema,
      revocations: try database.revocations())
    try SnapshotFile.write(header, to: path, next)
  }
}
