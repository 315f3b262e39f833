import Glibc

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
