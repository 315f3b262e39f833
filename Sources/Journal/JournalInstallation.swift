import Glibc

/// Makes the journal of a directory from a copy of a state.
package enum JournalInstallation {
  /// Makes the journal of a directory from a backup: its state, revision and schema under another epoch, so that no
  /// cursor of before is taken for one of the new store. Gives the name of the directory in which the store that was
  /// there is now, nil where there was none.
  ///
  /// Throws `invalid` where there is a store with records, unless it is to be replaced; `inUse` where another process
  /// has it; `damaged` where the backup is not what was written: then nothing has changed. One that is interrupted is
  /// to be made again; until then a server does not start there, or starts with what was there before.
  @discardableResult
  package static func restore(
    _ backup: SnapshotFile, to directory: String, epoch: String, replacing: Bool, milliseconds: Int64
  ) throws(JournalError) -> String? {
    let layout = JournalLayout(directory: directory)
    try SystemFile.makeDirectory(directory)
    let lock = try DirectoryLock(layout)
    defer { withExtendedLifetime(lock) {} }
    guard replacing || isEmpty(layout) else {
      throw .invalid("\(directory): there is a store already")
    }
    let next = JournalLayout(directory: layout.restoring)
    try SystemFile.removeDirectory(next.directory)
    let revocations = Revocation.merged(backup.header.revocations ?? [], JournalDatabase.revocations(in: layout))
    try make(next, of: backup, epoch: epoch, revocations)
    let aside = SystemFile.unusedName("\(directory)/replaced-\(SystemFile.timeName(milliseconds))")
    let isReplaced = try moveAside(layout, to: JournalLayout(directory: aside))
    // The mark comes last, and the database before it: a directory with neither would be one for a new store.
    try SystemFile.rename(next.snapshots, to: layout.snapshots)
    try SystemFile.rename(next.database, to: layout.database)
    try SystemFile.syncDirectory(directory)
    try SystemFile.rename(next.mark, to: layout.mark)
    try SystemFile.removeDirectory(next.directory)
    try SystemFile.syncDirectory(directory)
    return isReplaced ? aside : nil
  }

  /// Whether nothing is lost where another store takes the place of what is there.
  private static func isEmpty(_ layout: JournalLayout) -> Bool {
    guard SystemFile.exists(layout.database) || SystemFile.exists(layout.mark) else { return true }
    guard let inspection = try? JournalInspection(directory: layout.directory) else { return false }
    defer { inspection.close() }
    return inspection.problems.isEmpty && inspection.last == 0
  }

  private static func make(
    _ layout: JournalLayout, of backup: SnapshotFile, epoch: String, _ revocations: [Revocation]
  ) throws(JournalError) {
    try SystemFile.makeDirectory(layout.snapshots)
    let source = backup.header
    let digest = JournalDigest.rebased(to: source.revision, schema: source.schema)
    let header = SnapshotFile.Header(
      epoch: epoch, revision: source.revision, digest: digest, milliseconds: source.milliseconds, schema: source.schema)
    try SnapshotFile.copy(backup, header, to: layout.snapshot(source.revision))
    let database = try JournalDatabase(layout.database, .synced)
    do throws(JournalError) {
      try database.write(
        JournalDatabase.Head(epoch: epoch, schema: source.schema, base: source.revision, baseDigest: digest))
      try database.write(revocations)
      try database.settle()
    } catch {
      database.close()
      throw error
    }
    database.close()
    guard SystemFile.size(of: layout.databaseLog) == 0 else {
      throw .untrusted("\(layout.database): its log was not put in its place")
    }
    let mark = try SystemFile(layout.mark, O_RDWR | O_CREAT)
    DurableWatermark(revision: source.revision, digest: digest).write(to: mark)
    for path in [layout.mark, layout.database] { try SystemFile(path, O_RDWR).sync() }
    try SystemFile.syncDirectory(layout.directory)
  }

  /// Moves a store's files; says whether there were any.
  private static func moveAside(_ old: JournalLayout, to new: JournalLayout) throws(JournalError) -> Bool {
    guard [old.database, old.mark, old.snapshots].contains(where: SystemFile.exists) else { return false }
    try SystemFile.makeDirectory(new.directory)
    // A copy, because the old one stays until the new one takes its place: it says that there was a store.
    if SystemFile.exists(old.mark) {
      let bytes = try SystemFile(old.mark, O_RDONLY).read(64)
      let copy = try SystemFile(new.mark, O_WRONLY | O_CREAT | O_TRUNC)
      try copy.write(bytes)
      try copy.sync()
    }
    for (from, to) in [
      (old.snapshots, new.snapshots), (old.database, new.database), (old.databaseLog, new.databaseLog),
    ] { _ = try SystemFile.renameIfThere(from, to: to) }
    try SystemFile.remove("\(old.database)-shm")
    try SystemFile.syncDirectory(new.directory)
    try SystemFile.syncDirectory(old.directory)
    return true
  }
}
