import Glibc

/// Creates the journal of a directory from a copy of a state.
package enum JournalInstallation {
  /// Creates the journal of a directory from a backup, with the backup's state, revision and schema and another epoch,
  /// so that no earlier cursor is accepted as one of the new store. Returns the name of the directory to which the
  /// previous store was moved; nil if there was none.
  ///
  /// Throws `invalid` if there is a store with records and `replacing` is false, `inUse` if another process uses it,
  /// and `damaged` if the backup is not as it was written; in these cases nothing has changed. Repeat a restore that
  /// was interrupted; until then a server does not start in the directory, or starts with the previous store.
  @discardableResult
  package static func restore(
    _ backup: SnapshotFile, to directory: String, epoch: String, replacing: Bool, milliseconds: Int64
  ) throws(JournalError) -> String? {
    let layout = JournalLayout(directory: directory)
    try SystemFile.makeDirectory(directory)
    let lock = try DirectoryLock(layout)
    defer { withExtendedLifetime(lock) {} }
    guard replacing || isEmpty(layout) else {
      throw .invalid("\(directory): a store already exists")
    }
    let source = backup.header
    let head = JournalDatabase.Head(
      epoch: epoch, schema: source.schema, base: source.revision,
      baseDigest: .rebased(to: source.revision, schema: source.schema))
    let revocations = Revocation.merged(source.revocations ?? [], JournalDatabase.revocations(in: layout))
    return try install(layout, head, backup, revocations, milliseconds)
  }

  /// Creates the journal of a directory from a copy of another node's journal, with its state, revision, schema, epoch
  /// and digest, so that the records that follow there can be appended here. Without a snapshot the journal begins
  /// before the first record. The previous contents are removed, except for the revocations. Throws `inUse` if another
  /// process uses the store. Repeat a call that was interrupted.
  package static func join(
    _ identity: JournalIdentity, _ snapshot: SnapshotFile?, to directory: String, milliseconds: Int64
  ) throws(JournalError) {
    let layout = JournalLayout(directory: directory)
    try SystemFile.makeDirectory(directory)
    let lock = try DirectoryLock(layout)
    defer { withExtendedLifetime(lock) {} }
    let head = JournalDatabase.Head(
      epoch: identity.epoch, schema: identity.schema, base: snapshot?.header.revision ?? 0,
      baseDigest: snapshot?.header.digest ?? .start)
    let revocations = JournalDatabase.revocations(in: layout)
    if let aside = try install(layout, head, snapshot, revocations, milliseconds) {
      try SystemFile.removeDirectory(aside)
    }
  }

  /// Returns true if an installation in the directory was interrupted before it finished.
  package static func isInterrupted(inDirectory directory: String) -> Bool {
    SystemFile.exists(JournalLayout(directory: directory).restoring)
  }

  /// Builds a store and moves it into place while its lock is held. Returns the directory to which the previous store
  /// was moved; nil if there was none.
  private static func install(
    _ layout: JournalLayout, _ head: JournalDatabase.Head, _ snapshot: SnapshotFile?, _ revocations: [Revocation],
    _ milliseconds: Int64
  ) throws(JournalError) -> String? {
    let directory = layout.directory
    let next = JournalLayout(directory: layout.restoring)
    try SystemFile.removeDirectory(next.directory)
    try make(next, head, snapshot, revocations)
    let aside = SystemFile.unusedName("\(directory)/replaced-\(SystemFile.timeName(milliseconds))")
    let isReplaced = try moveAside(layout, to: JournalLayout(directory: aside))
    // The mark is moved last, and the database just before it: a directory with neither would be taken for one without
    // a store.
    try SystemFile.rename(next.snapshots, to: layout.snapshots)
    try SystemFile.rename(next.database, to: layout.database)
    try SystemFile.syncDirectory(directory)
    try SystemFile.rename(next.mark, to: layout.mark)
    try SystemFile.removeDirectory(next.directory)
    try SystemFile.syncDirectory(directory)
    return isReplaced ? aside : nil
  }

  /// Returns true if nothing is lost when another store replaces this one.
  private static func isEmpty(_ layout: JournalLayout) -> Bool {
    guard layout.hasStore else { return true }
    guard let inspection = try? JournalInspection(directory: layout.directory) else { return false }
    defer { inspection.close() }
    return inspection.problems.isEmpty && inspection.last == 0
  }

  private static func make(
    _ layout: JournalLayout, _ head: JournalDatabase.Head, _ snapshot: SnapshotFile?, _ revocations: [Revocation]
  ) throws(JournalError) {
    try SystemFile.makeDirectory(layout.snapshots)
    if let snapshot {
      let header = SnapshotFile.Header(
        epoch: head.epoch, revision: head.base, digest: head.baseDigest, milliseconds: snapshot.header.milliseconds,
        schema: head.schema)
      try SnapshotFile.copy(snapshot, header, to: layout.snapshot(head.base))
    }
    try JournalDatabase.write(to: layout.database) { database throws(JournalError) in
      try database.write(head)
      try database.write(revocations)
    }
    let mark = try SystemFile(layout.mark, O_RDWR | O_CREAT)
    DurableWatermark(revision: head.base, digest: head.baseDigest).write(to: mark)
    for path in [layout.mark, layout.database] { try SystemFile(path, O_RDWR).sync() }
    try SystemFile.syncDirectory(layout.directory)
  }

  /// Moves a store's files. Returns false if there were none.
  private static func moveAside(_ old: JournalLayout, to new: JournalLayout) throws(JournalError) -> Bool {
    guard [old.database, old.mark, old.snapshots].contains(where: SystemFile.exists) else { return false }
    try SystemFile.makeDirectory(new.directory)
    // Copies the mark, because the old one stays until the new one replaces it: it shows that there was a store.
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
