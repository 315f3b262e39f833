import Glibc
import Support

/// The paths of a store's files in its directory.
struct JournalLayout: Sendable {
  /// The directory.
  let directory: String

  /// The lock file, which names the process that uses the store.
  var lock: String { "\(directory)/lock" }
  /// The records, in an SQLite database.
  var database: String { "\(directory)/journal.sqlite" }
  /// The transactions that SQLite has written and not yet moved into the database.
  var databaseLog: String { "\(database)-wal" }
  /// The mark: the position up to which the records have been acknowledged.
  var mark: String { "\(directory)/acknowledged" }
  /// The snapshots.
  var snapshots: String { "\(directory)/snapshots" }

  /// True if the directory has a store, or the remains of one.
  var hasStore: Bool { SystemFile.exists(database) || SystemFile.exists(mark) }

  /// All files of a store once it exists.
  var all: [String] { [lock, database, databaseLog, "\(database)-shm", mark, snapshots] }
  /// The directory in which a restore builds a store before it moves it into place.
  var restoring: String { "\(directory)/restoring" }

  /// Returns the path of a snapshot.
  func snapshot(_ revision: UInt64) -> String {
    "\(snapshots)/\(revision.padded(to: 20)).snapshot"
  }

  /// Returns the revision in the name of a snapshot's file; nil if the name is not that of a snapshot.
  static func revision(ofSnapshot name: String) -> UInt64? {
    guard name.hasSuffix(".snapshot") else { return nil }
    return UInt64(name.dropLast(".snapshot".count))
  }
}

/// The lock of a store for one process, held until it is released or the process ends for any reason.
///
/// Two files are locked. `lock` names the process, and exists before any other file. The database is the file that must
/// not have two writers: its own lock holds whatever happens to `lock`. It is a lock by `flock`, independent of the
/// byte-range locks that SQLite takes on the same file, so that readers are not blocked.
final class DirectoryLock: Sendable {
  private let file: FileLock
  private let database: FileLock?

  /// Locks the store of a directory, or throws `inUse` with the process that holds it. If there is no database, calls
  /// `allow`, with `lock` held, which throws if none may be created; without `allow`, none is created.
  ///
  /// Create the lock before SQLite opens the database, and release it after SQLite has closed it: closing any
  /// descriptor of a file ends all byte-range locks that the process has on it.
  init(_ layout: JournalLayout, creating allow: (() throws(JournalError) -> Void)? = nil) throws(JournalError) {
    let lock = try SystemFile(layout.lock, O_RDWR | O_CREAT)
    guard let file = FileLock(lock) else {
      let holder = String(decoding: (try? lock.read(32)) ?? [], as: UTF8.self)
      let name = holder.isEmpty ? "another process" : "process \(holder.prefix { $0.isNumber })"
      throw .inUse("the store is in use by \(name) (it holds \(layout.lock))")
    }
    self.file = file
    if !SystemFile.exists(layout.database) {
      guard let allow else {
        database = nil
        file.sign()
        return
      }
      try allow()
    }
    guard let database = FileLock(try SystemFile(layout.database, O_RDWR | O_CREAT)) else {
      throw .inUse("the store is in use by another process (it holds \(layout.database))")
    }
    self.database = database
    file.sign()
  }

  /// The identity of the locked database file; nil if there was none.
  var databaseIdentity: FileIdentity? { database.flatMap { FileIdentity($0.file) } }

  /// Releases both locks.
  func release() {
    database?.release()
    file.release()
  }
}

/// A file locked by `flock` until it is released or deallocated. Closing the descriptor does not suffice: a child
/// process between `fork` and `exec` at that moment has a copy of it, with the same lock.
private final class FileLock: Sendable {
  let file: SystemFile

  /// Takes the lock; nil if another open file holds it.
  init?(_ file: SystemFile) {
    guard flock(file.descriptor, LOCK_EX | LOCK_NB) == 0 else { return nil }
    self.file = file
  }

  deinit { release() }

  /// Writes the process ID to the file, for operators who look for the process. A write error is ignored.
  func sign() {
    _ = ftruncate(file.descriptor, 0)
    _ = file.write(Array("\(getpid())\n".utf8), at: 0)
  }

  func release() {
    _ = flock(file.descriptor, LOCK_UN)
  }
}

/// The database and the log that a journal has open, and the check that they still have these names: if the directory
/// was removed, moved or replaced, writes to them are lost.
struct StoreFiles: Sendable {
  private let layout: JournalLayout
  private let database: FileIdentity?
  private let log: FileIdentity?

  /// Creates the files of a store whose database SQLite has just opened; SQLite may have recreated the log. Without a
  /// lock the journal is only read, and the checks always succeed.
  init(_ layout: JournalLayout, _ lock: DirectoryLock?) {
    self.layout = layout
    database = lock?.databaseIdentity
    log = database == nil ? nil : FileIdentity(path: layout.databaseLog)
  }

  /// Throws `untrusted` if the database or its log is gone.
  func require() throws(JournalError) {
    try requireDatabase()
    guard let log, FileIdentity(path: layout.databaseLog) != log else { return }
    throw Self.gone(layout.databaseLog)
  }

  /// Throws `untrusted` if the database is gone.
  func requireDatabase() throws(JournalError) {
    guard let database, FileIdentity(path: layout.database) != database else { return }
    throw Self.gone(layout.database)
  }

  /// Throws if there is no space for so many bytes: writes a file of that size and removes it.
  func requireRoom(_ bytes: Int) throws(JournalError) {
    let path = "\(layout.directory)/probe"
    do throws(JournalError) {
      let file = try SystemFile(path, O_WRONLY | O_CREAT | O_TRUNC)
      let block = [UInt8](repeating: 0, count: 65_536)
      for _ in 0..<(bytes / block.count + 1) { try file.write(block) }
      try file.sync()
    } catch {
      try? SystemFile.remove(path)
      throw error
    }
    try SystemFile.remove(path)
  }

  private static func gone(_ path: String) -> JournalError {
    .untrusted("\(path): it was removed or replaced while the server runs")
  }
}

/// The state recorded in a database's file, without its log: a number at a fixed place of SQLite's header ("The
/// Database File Format", section 1.3.14), which Keyway uses to record whether the log holds a part of the store.
///
/// While a store is open, acknowledged transactions are in the log, and reach the database later. Without the log, a
/// copy looks like an older store, or an empty one. Therefore the number is in the database before the first
/// transaction is in the log, and a clean stop resets it once everything is in the database.
enum DatabaseHeader {
  private static let offset: off_t = 60
  /// The value of `user_version` while the log is needed; 0, SQLite's default, means that it is not.
  static let logIsNeeded: Int32 = 1

  /// Returns true if a store is incomplete without its log, and the log is missing. Must not be called in a process in
  /// which SQLite has the database open, since closing the file ends SQLite's locks.
  static func isLogMissing(_ layout: JournalLayout) -> Bool {
    guard SystemFile.size(of: layout.databaseLog) == 0, let file = try? SystemFile(layout.database, O_RDONLY) else {
      return false
    }
    var number: UInt32 = 0
    let count = withUnsafeMutableBytes(of: &number) { pread(file.descriptor, $0.baseAddress, $0.count, offset) }
    return count == 4 && Int32(bitPattern: UInt32(bigEndian: number)) == logIsNeeded
  }

  /// Returns the error for a missing log.
  static func missingLog(_ layout: JournalLayout) -> JournalError {
    .damaged(
      place: layout.databaseLog,
      reason: "it is missing or empty, but the last transactions of the store are in it; a copy must include all files")
  }
}
