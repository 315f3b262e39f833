import Glibc

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
