import Glibc

/// Replaces the database and snapshots of a store, in an order that loses neither the old nor the new ones wherever it
/// is interrupted, so that `resume` can continue.
///
/// The new files have names that end with `.repaired`. Once they are complete and on the disk, the old database is
/// renamed; from then on the missing database indicates that a replacement is under way.
struct JournalReplacement {
  private let layout: JournalLayout
  private let suffix: String
  private(set) var movedAside: [String] = []

  private static let ending = ".repaired"

  init(_ layout: JournalLayout, milliseconds: Int64) {
    self.layout = layout
    suffix = ".damaged-\(SystemFile.timeName(milliseconds))"
  }

  private var draft: String { layout.database + Self.ending }

  /// Completes an interrupted replacement, or removes what it had prepared.
  mutating func resume() throws(JournalError) {
    // If the database was missing from the start, the new files may be incomplete.
    if !SystemFile.exists(layout.database), SystemFile.exists(draft), try hasMovedDatabase() { try renameDatabase() }
    if SystemFile.exists(draft) {
      try removeDrafts()
    } else {
      try renameSnapshots()
    }
  }

  private func hasMovedDatabase() throws(JournalError) -> Bool {
    let name = layout.database.dropFirst(layout.directory.count + 1)
    return try SystemFile.names(in: layout.directory).contains { $0.hasPrefix("\(name).damaged-") }
  }

  private func removeDrafts() throws(JournalError) {
    // The database goes last: without it, the snapshots would be taken for the rest of a replacement.
    for name in try snapshotDrafts() { try SystemFile.remove("\(layout.snapshots)/\(name)") }
    for path in ["\(draft)-wal", "\(draft)-shm", draft] { try SystemFile.remove(path) }
  }

  private func snapshotDrafts() throws(JournalError) -> [String] {
    guard SystemFile.exists(layout.snapshots) else { return [] }
    return try SystemFile.names(in: layout.snapshots).filter { $0.hasSuffix(Self.ending) }
  }

  /// Writes the new database, and new snapshots if the epoch changes; moves aside the snapshots that cannot be used.
  /// The database gets the records from `start` to the revision that `reader` has reached after reading them.
  mutating func prepare(
    _ inspection: JournalInspection, _ start: JournalInspection.Start, _ reader: JournalInspection.Reader,
    _ identity: JournalIdentity
  ) throws(JournalError) {
    try writeDatabase(inspection, start, until: reader.revision, digest: reader.digest, identity)
    for snapshot in inspection.snapshots {
      let isKept =
        snapshot.condition == .whole && snapshot.revision >= start.revision
        && snapshot.header?.digest == reader.digests[snapshot.revision] && snapshot.header?.schema == identity.schema
      if isKept, let header = snapshot.header {
        if header.epoch != identity.epoch { try write(snapshot, header, epoch: identity.epoch) }
      } else if case .unused = snapshot.condition, snapshot.revision < start.revision {
        // Left by an interrupted compaction; it is never read.
        continue
      } else {
        try moveAside(snapshot.path)
      }
    }
    if SystemFile.exists(layout.snapshots) { try SystemFile.syncDirectory(layout.snapshots) }
  }

  private func writeDatabase(
    _ inspection: JournalInspection, _ start: JournalInspection.Start, until: UInt64, digest: JournalDigest,
    _ identity: JournalIdentity
  ) throws(JournalError) {
    try JournalDatabase.write(to: draft) { database throws(JournalError) in
      try database.write(
        JournalDatabase.Head(
          epoch: identity.epoch, schema: identity.schema, base: start.revision, baseDigest: start.digest))
      if let revocations = try? inspection.database?.wholeRevocations() { try database.write(revocations) }
      var reader = inspection.reader(from: start, through: until)
      while let entries = reader.nextEntries() {
        try database.append(entries)
        try database.checkpoint()
      }
      // Verifies the bytes that were written, not those that were meant to be written.
      var copied = start.digest
      if until > start.revision {
        _ = try database.read(after: start.revision, start.digest, through: until) { _, link in
          copied = link
          return true
        }
      }
      guard copied == digest else {
        throw JournalError.untrusted("\(draft): it differs from what was copied; the disk may be faulty")
      }
    }
    try SystemFile(draft, O_RDWR).sync()
  }

  private func write(
    _ snapshot: StoredSnapshot, _ header: SnapshotFile.Header, epoch: String
  ) throws(JournalError) {
    let another = SnapshotFile.Header(
      epoch: epoch, revision: header.revision, digest: header.digest, milliseconds: header.milliseconds,
      schema: header.schema)
    try SnapshotFile.copy(SnapshotFile(path: snapshot.path), another, to: snapshot.path + Self.ending)
  }

  /// Moves everything into place, and marks all of it as acknowledged.
  mutating func swap(mark: DurableWatermark) throws(JournalError) {
    try SystemFile.syncDirectory(layout.directory)
    try renameDatabase()
    try renameSnapshots()
    // Only now: earlier, the mark would have the old records after it cut off.
    let file = try SystemFile(layout.mark, O_RDWR | O_CREAT)
    mark.write(to: file)
    try file.sync()
    try SystemFile.syncDirectory(layout.directory)
  }

  private mutating func renameDatabase() throws(JournalError) {
    let aside = SystemFile.unusedName(layout.database + suffix)
    if try SystemFile.renameIfThere(layout.database, to: aside) { movedAside.append(aside) }
    // SQLite would apply an old log to the new database.
    if SystemFile.size(of: layout.databaseLog) > 0 {
      let log = SystemFile.unusedName("\(aside)-wal")
      try SystemFile.rename(layout.databaseLog, to: log)
      movedAside.append(log)
    }
    try SystemFile.remove(layout.databaseLog)
    try SystemFile.remove("\(layout.database)-shm")
    try SystemFile.syncDirectory(layout.directory)
    try SystemFile.rename(draft, to: layout.database)
    for path in ["\(draft)-wal", "\(draft)-shm"] { try SystemFile.remove(path) }
    try SystemFile.syncDirectory(layout.directory)
  }

  private mutating func renameSnapshots() throws(JournalError) {
    try SystemFile.makeDirectory(layout.snapshots)
    for name in try snapshotDrafts() {
      let path = "\(layout.snapshots)/\(name)"
      try SystemFile.rename(path, to: String(path.dropLast(Self.ending.count)))
    }
    try SystemFile.syncDirectory(layout.snapshots)
  }

  private mutating func moveAside(_ path: String) throws(JournalError) {
    let aside = SystemFile.unusedName(path + suffix)
    try SystemFile.rename(path, to: aside)
    movedAside.append(aside)
  }
}
