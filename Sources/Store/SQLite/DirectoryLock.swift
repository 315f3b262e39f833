import Glibc

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
