import Glibc
import Support

/// Where a store's files are in its directory.
struct JournalLayout: Sendable {
  /// The directory.
  let directory: String

  /// Names the process that has the store.
  var lock: String { "\(directory)/lock" }
  /// The records, in an SQLite database.
  var database: String { "\(directory)/journal.sqlite" }
  /// What SQLite has written and not yet put in its place.
  var databaseLog: String { "\(database)-wal" }
  /// How far the records have been acknowledged.
  var mark: String { "\(directory)/acknowledged" }
  /// The snapshots.
  var snapshots: String { "\(directory)/snapshots" }

  /// True if the directory has a store, or what is left of one.
  var hasStore: Bool { SystemFile.exists(database) || SystemFile.exists(mark) }

  /// Everything that a store is made of, once it is made.
  var all: [String] { [lock, database, databaseLog, "\(database)-shm", mark, snapshots] }
  /// Where a restore puts a store together, before it takes its place.
  var restoring: String { "\(directory)/restoring" }

  /// The file of a snapshot.
  func snapshot(_ revision: UInt64) -> String {
    "\(snapshots)/\(revision.padded(to: 20)).snapshot"
  }

  /// The revision that the name of a snapshot's file says; nil where it is no such name.
  static func revision(ofSnapshot name: String) -> UInt64? {
    guard name.hasSuffix(".snapshot") else { return nil }
    return UInt64(name.dropLast(".snapshot".count))
  }
}

/// Holds a store for one process, until this is let go or the process ends, however it does.
///
/// Two files are locked. `lock` says which process it is, and is there before any other file. The database is what must
/// not have two writers: a lock of that very file holds whatever becomes of `lock`. It is `flock`'s, which has nothing
/// to do with the locks of byte ranges that SQLite takes on the same file, so those who only read are not hindered.
final class DirectoryLock: Sendable {
  private let file: FileLock
  private let database: FileLock?

  /// Takes the store of a directory, or throws `inUse` with the process that has it. Where there is no database,
  /// `allow` is asked, with `lock` held, whether one may be made, by throwing where it may not; without `allow`, none
  /// is made.
  ///
  /// To be made before SQLite opens the database and let go after it has closed it: closing any descriptor of a file
  /// ends all locks of byte ranges that the process has on it.
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

  /// Which file the locked database is; nil where there was none.
  var databaseIdentity: FileIdentity? { database.flatMap { FileIdentity($0.file) } }

  /// Lets the store go.
  func release() {
    database?.release()
    file.release()
  }
}

/// A file under `flock`, until this is released or let go. Closing the descriptor does not do: a child that is between
/// `fork` and `exec` at that moment has another, with the same lock.
private final class FileLock: Sendable {
  let file: SystemFile

  /// Takes the lock; nil where another open file has it.
  init?(_ file: SystemFile) {
    guard flock(file.descriptor, LOCK_EX | LOCK_NB) == 0 else { return nil }
    self.file = file
  }

  deinit { release() }

  /// Writes the process into the file, for operators who ask which one has it: that it cannot be written is no reason
  /// not to go on.
  func sign() {
    _ = ftruncate(file.descriptor, 0)
    _ = file.write(Array("\(getpid())\n".utf8), at: 0)
  }

  func release() {
    _ = flock(file.descriptor, LOCK_UN)
  }
}

/// The database and the log that a journal has open, and whether they are still what has these names: where the
/// directory was removed, moved or replaced, what is written to them is lost.
struct StoreFiles: Sendable {
  private let layout: JournalLayout
  private let database: FileIdentity?
  private let log: FileIdentity?

  /// The files of a store whose database SQLite has opened just now; it may have made the log anew. Without a lock the
  /// journal is only read, and nothing is ever missed.
  init(_ layout: JournalLayout, _ lock: DirectoryLock?) {
    self.layout = layout
    database = lock?.databaseIdentity
    log = database == nil ? nil : FileIdentity(path: layout.databaseLog)
  }

  /// Throws `untrusted` where the database or its log are gone.
  func require() throws(JournalError) {
    try requireDatabase()
    guard let log, FileIdentity(path: layout.databaseLog) != log else { return }
    throw Self.gone(layout.databaseLog)
  }

  /// The same of the database alone.
  func requireDatabase() throws(JournalError) {
    guard let database, FileIdentity(path: layout.database) != database else { return }
    throw Self.gone(layout.database)
  }

  /// Throws where there is no room for so many bytes: writes a file as long, and takes it away again.
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

/// What a database's file says of itself, without its log: a number at a fixed place of SQLite's header ("The Database
/// File Format", section 1.3.14), which Keyway uses to remember whether the log has a part of the store.
///
/// While a store is open, acknowledged transactions are in the log, and reach the database later. Without that file a
/// copy looks like an older store, or an empty one. So the number is in the database before the first transaction is in
/// the log, and is taken back by a clean stop, once everything is in the database.
enum DatabaseHeader {
  private static let offset: off_t = 60
  /// The value of `user_version` while the log is needed; 0, which SQLite begins with, says that it is not.
  static let logIsNeeded: Int32 = 1

  /// Whether a store is not whole without its log, which is not there. Not to be asked by a process while SQLite has
  /// the database open in it, since closing the file ends SQLite's locks.
  static func isLogMissing(_ layout: JournalLayout) -> Bool {
    guard SystemFile.size(of: layout.databaseLog) == 0, let file = try? SystemFile(layout.database, O_RDONLY) else {
      return false
    }
    var number: UInt32 = 0
    let count = withUnsafeMutableBytes(of: &number) { pread(file.descriptor, $0.baseAddress, $0.count, offset) }
    return count == 4 && Int32(bitPattern: UInt32(bigEndian: number)) == logIsNeeded
  }

  /// What is wrong where the log is missing.
  static func missingLog(_ layout: JournalLayout) -> JournalError {
    .damaged(
      place: layout.databaseLog,
      reason: "it is missing or empty, and the last transactions of the store are in it; a copy has to have all files")
  }
}
