import Foundation
import GRDB
import GRDBSQLite

/// The SQLite database of a journal: its tables, and the code that reads and writes them. Independent of locks, marks
/// and snapshots.
struct JournalDatabase: Sendable {
  /// The single row that identifies the journal and tells where its records begin.
  struct Head: Hashable, Codable {
    var epoch: String
    var schema: String
    var base: UInt64
    var baseDigest: JournalDigest
  }

  /// The purpose for which a database is opened.
  enum Mode {
    /// Commits are on the disk before they are acknowledged.
    case synced
    /// Commits are in order, and reach the disk a little later.
    case relaxed
    /// Read only; another process may write.
    case readOnly
  }

  private let pool: DatabasePool
  private let path: String
  /// GRDB does not protect a reader while its pool is closed: its connection would be closed while in use.
  private let gate = UseGate()

  /// Opens the database, and creates its tables if there are none. Throws `unusable` if a later version of Keyway made
  /// it.
  init(_ path: String, _ mode: Mode) throws(JournalError) {
    self.path = path
    // SQLite would create a file that all users can read; its log gets the same permissions as the database.
    if mode != .readOnly, !SystemFile.exists(path) { _ = try SystemFile(path, O_RDWR | O_CREAT) }
    do {
      var configuration = Configuration()
      configuration.label = "keyway.journal"
      configuration.maximumReaderCount = 4
      configuration.readonly = mode == .readOnly
      pool = try DatabasePool(path: path, configuration: configuration)
      if mode != .readOnly {
        try pool.writeWithoutTransaction { db in
          try db.execute(sql: "PRAGMA synchronous = \(mode == .synced ? "FULL" : "NORMAL")")
          // The writer does this after it has responded, see `checkpoint`.
          try db.execute(sql: "PRAGMA wal_autocheckpoint = 0")
          Self.keepLog(db, true)
        }
      }
      let migrator = Self.migrator
      guard try pool.read({ try !migrator.hasBeenSuperseded($0) }) else {
        throw JournalError.unusable("\(path): it was made by a later version of Keyway")
      }
      if mode != .readOnly { try migrator.migrate(pool) }
    } catch {
      throw Self.translated(error, path)
    }
  }

  /// Every version of the tables, from the first on.
  private static var migrator: DatabaseMigrator {
    var migrator = DatabaseMigrator()
    migrator.registerMigration("1: records and head") { db in
      try db.execute(
        sql: """
          CREATE TABLE record (
            revision INTEGER PRIMARY KEY, milliseconds INTEGER NOT NULL, digest INTEGER NOT NULL, body BLOB NOT NULL);
          CREATE TABLE head (id INTEGER PRIMARY KEY CHECK (id = 1), content TEXT NOT NULL, digest INTEGER NOT NULL);
          """)
    }
    migrator.registerMigration("2: revocations of tokens") { db in
      // The sub is a blob: it is compared by its bytes, which may include a zero.
      try db.execute(
        sql: """
          CREATE TABLE revocation (
            subject BLOB PRIMARY KEY, milliseconds INTEGER NOT NULL, digest INTEGER NOT NULL) WITHOUT ROWID;
          """)
    }
    // Earlier versions cannot read such snapshots.
    migrator.registerMigration("3: two revisions of an object in snapshots") { _ in }
    return migrator
  }

  // MARK: Reading

  /// Returns the head; nil if there is none.
  func head() throws(JournalError) -> Head? {
    try reading { db in
      guard let row = try Row.fetchOne(db, sql: "SELECT content, digest FROM head") else { return nil }
      // A damaged file may hold anything here, of any type.
      guard let content = String.fromDatabaseValue(row[0]), let digest = Int64.fromDatabaseValue(row[1]),
        JournalDigest.start.linked(to: Array(content.utf8)).value == UInt64(bitPattern: digest)
      else {
        throw JournalError.damaged(place: path, reason: "the head is not what was written")
      }
      return try JSONDecoder().decode(Head.self, from: Data(content.utf8))
    }
  }

  /// Returns the last revision; nil if there is no record.
  func lastRevision() throws(JournalError) -> UInt64? {
    try reading { db in
      try Int64.fetchOne(db, sql: "SELECT max(revision) FROM record").map(UInt64.init(bitPattern:))
    }
  }

  /// Returns the digest at a revision: the head's if the records begin there, otherwise the one stored with the record,
  /// unchecked; nil if there is none.
  func digest(at revision: UInt64, _ head: Head) throws(JournalError) -> JournalDigest? {
    if revision == head.base { return head.baseDigest }
    return try reading { db in
      try Row.fetchOne(
        db, sql: "SELECT digest FROM record WHERE revision = ?", arguments: [Int64(bitPattern: revision)]
      ).flatMap { Int64.fromDatabaseValue($0[0]) }.map { JournalDigest(value: UInt64(bitPattern: $0)) }
    }
  }

  /// Returns the digest at a revision, as `digest(at:_:)` does, but throws `damaged` if there is none.
  func requireDigest(at revision: UInt64, _ head: Head) throws(JournalError) -> JournalDigest {
    guard let digest = try digest(at: revision, head) else { throw missing(revision) }
    return digest
  }

  /// Passes the records after a revision to `receive`, as long as they follow on one another and on the digest there,
  /// until `receive` returns false. Throws `damaged` for the first one that does not. Returns the last revision read.
  func read(
    after revision: UInt64, _ digest: JournalDigest, through last: UInt64,
    _ receive: (JournalRecord, JournalDigest) throws -> Bool
  ) throws(JournalError) -> UInt64 {
    try reading { db in
      let statement = try db.cachedStatement(
        sql: """
          SELECT revision, milliseconds, digest, body FROM record
          WHERE revision > ? AND revision <= ? ORDER BY revision
          """)
      let rows = try Row.fetchCursor(
        statement, arguments: [Int64(bitPattern: revision), Int64(bitPattern: last)])
      var (present, link) = (revision, digest)
      while try rows.next() != nil {
        guard let (record, digest) = Self.record(of: statement.sqliteStatement) else { throw changed(present + 1) }
        guard record.revision == present + 1 else { throw missing(present + 1) }
        link = link.linked(to: record)
        guard link.value == digest else { throw changed(record.revision) }
        present = record.revision
        if try !receive(record, link) { return present }
      }
      guard present == last else { throw missing(present + 1) }
      return present
    }
  }

  /// Returns the record and its digest in the current row of a statement; nil if the row holds something else, since a
  /// damaged file may hold anything. Uses SQLite's own functions: GRDB's convert and allocate.
  private static func record(of row: SQLiteStatement) -> (JournalRecord, digest: UInt64)? {
    guard (CInt(0)...2).allSatisfy({ sqlite3_column_type(row, $0) == SQLITE_INTEGER }) else { return nil }
    let body = UnsafeRawBufferPointer(start: sqlite3_column_blob(row, 3), count: Int(sqlite3_column_bytes(row, 3)))
    let record = JournalRecord(
      revision: UInt64(bitPattern: sqlite3_column_int64(row, 0)), milliseconds: sqlite3_column_int64(row, 1),
      body: Array(body))
    return (record, UInt64(bitPattern: sqlite3_column_int64(row, 2)))
  }

  private func changed(_ revision: UInt64) -> JournalError {
    .damaged(place: "\(path), revision \(revision)", reason: "it is not what was written")
  }

  private func missing(_ revision: UInt64) -> JournalError {
    .damaged(place: "\(path), revision \(revision)", reason: "it is missing")
  }

  private func reading<Result>(_ body: (Database) throws -> Result) throws(JournalError) -> Result {
    try using { try $0.read(body) }
  }

  // MARK: Writing

  /// Writes records with their digests, in one transaction with one sync.
  func append(_ entries: [(record: JournalRecord, digest: JournalDigest)]) throws(JournalError) {
    try using { pool in
      try pool.writeWithoutTransaction { db in
        // A single statement is a transaction of its own.
        guard entries.count > 1 else { return try Self.insert(entries, db) }
        // Prepared once, since GRDB's own statement would be compiled for every batch.
        try db.cachedStatement(sql: "BEGIN IMMEDIATE TRANSACTION").execute()
        do {
          try Self.insert(entries, db)
          try db.cachedStatement(sql: "COMMIT TRANSACTION").execute()
        } catch {
          if db.isInsideTransaction { try? db.rollback() }
          throw error
        }
      }
    }
  }

  /// The number of records that one statement writes, if there are as many, since each execution has a cost.
  private static let rowsPerStatement = 16

  private static func insert(
    _ entries: [(record: JournalRecord, digest: JournalDigest)], _ db: Database
  ) throws {
    var rest = entries[...]
    while !rest.isEmpty {
      let count = rest.count >= rowsPerStatement ? rowsPerStatement : 1
      let statement = try db.cachedStatement(sql: count == 1 ? singleInsertion : multipleInsertion)
      try execute(statement, of: rest.prefix(count))
      rest = rest.dropFirst(count)
    }
  }

  /// Runs an insertion with the values of these records, bound by SQLite's own functions: GRDB's arguments cost nine
  /// allocations each, a fifth of what a write allocates on the writer's thread.
  private static func execute(
    _ insertion: Statement, of entries: ArraySlice<(record: JournalRecord, digest: JournalDigest)>
  ) throws {
    // GRDB does not run a statement whose arguments were not set. These bind nothing, so that the bindings below stay.
    insertion.setUncheckedArguments(StatementArguments())
    let statement = insertion.sqliteStatement
    var bodies: [UInt8] = []
    bodies.reserveCapacity(entries.reduce(1) { $0 + $1.record.body.count })
    for entry in entries { bodies += entry.record.body }
    // One more byte, since an empty buffer has no address, which SQLite takes for NULL.
    bodies.append(0)
    try bodies.withUnsafeBytes { bytes in
      // SQLite reads the bytes in place, so the bindings are cleared before the bytes are freed.
      defer { sqlite3_clear_bindings(statement) }
      var (index, offset) = (CInt(0), 0)
      for (record, digest) in entries {
        for number in [Int64(bitPattern: record.revision), record.milliseconds, Int64(bitPattern: digest.value)] {
          index += 1
          try check(sqlite3_bind_int64(statement, index, number))
        }
        index += 1
        try check(
          sqlite3_bind_blob64(
            statement, index, bytes.baseAddress.map { $0 + offset }, UInt64(record.body.count), nil))
        offset += record.body.count
      }
      try insertion.execute()
    }
  }

  private static func check(_ code: CInt) throws {
    guard code == SQLITE_OK else { throw DatabaseError(resultCode: ResultCode(rawValue: code)) }
  }

  private static let singleInsertion = "INSERT INTO record (revision, milliseconds, digest, body) VALUES (?, ?, ?, ?)"
  private static let multipleInsertion =
    singleInsertion + String(repeating: ", (?, ?, ?, ?)", count: rowsPerStatement - 1)

  /// Writes the head and removes records, in one transaction. With `isLogNeeded` it also records that the log is
  /// needed; see `requireLog`.
  func write(
    _ head: Head, removingAfter last: UInt64? = nil, removingUpTo base: UInt64? = nil, isLogNeeded: Bool = false
  ) throws(JournalError) {
    try writing { db in
      if isLogNeeded { try Self.writeLogIsNeeded(db) }
      let encoder = JSONEncoder()
      encoder.outputFormatting = .sortedKeys
      let content = String(decoding: try encoder.encode(head), as: UTF8.self)
      let digest = JournalDigest.start.linked(to: Array(content.utf8))
      try db.execute(
        sql: "INSERT OR REPLACE INTO head (id, content, digest) VALUES (1, ?, ?)",
        arguments: [content, Int64(bitPattern: digest.value)])
      if let last {
        try db.execute(sql: "DELETE FROM record WHERE revision > ?", arguments: [Int64(bitPattern: last)])
      }
      if let base {
        try db.execute(sql: "DELETE FROM record WHERE revision <= ?", arguments: [Int64(bitPattern: base)])
      }
    }
  }

  /// Removes the oldest records up to a revision: at most `limit` of them, and at most `bytes` in total, but at least
  /// one. Returns false if none are left.
  func remove(upTo base: UInt64, limit: Int, bytes: Int) throws(JournalError) -> Bool {
    try writing { db in
      let oldest = try Row.fetchCursor(
        db, sql: "SELECT revision, length(body) FROM record WHERE revision <= ? ORDER BY revision LIMIT ?",
        arguments: [Int64(bitPattern: base), limit])
      var end: Int64?
      var left = bytes
      while let row = try oldest.next() {
        left -= Int.fromDatabaseValue(row[1]) ?? 0
        guard end == nil || left >= 0 else { break }
        end = row[0]
      }
      guard let end else { return false }
      try db.execute(sql: "DELETE FROM record WHERE revision <= ?", arguments: [end])
      return end < Int64(bitPattern: base)
    }
  }

  /// Moves the log's contents into the database, so that the log is written from its beginning again. Returns false if
  /// a part has to wait for readers of an earlier state.
  @discardableResult
  func checkpoint() throws(JournalError) -> Bool {
    try using { pool in
      let frames = try pool.writeWithoutTransaction { db in try db.checkpoint(.passive) }
      return frames.checkpointedFrameCount == frames.walFrameCount
    }
  }

  /// Returns the space of removed records to the file system.
  func shrink() throws(JournalError) {
    try using { try $0.vacuum() }
    try settle()
  }

  /// Moves everything from the log into the database, with a sync, and empties the log, so that the database is a
  /// single file.
  private func emptyLog() throws(JournalError) {
    try using { try $0.writeWithoutTransaction { db in _ = try db.checkpoint(.truncate) } }
  }

  /// Records in the database that it is incomplete without its log, which is then neither empty nor removed when the
  /// database is closed. Returns true if this is on the disk in the database itself; while another process reads, a
  /// later `checkpoint` moves it there.
  func requireLog() throws(JournalError) -> Bool {
    try using { pool in try pool.writeWithoutTransaction(Self.writeLogIsNeeded) }
    return try checkpoint()
  }

  private static func writeLogIsNeeded(_ db: Database) throws {
    keepLog(db, true)
    try db.execute(sql: "PRAGMA user_version = \(DatabaseHeader.logIsNeeded)")
  }

  /// Moves everything into the database, with a sync, and records there that it is complete without its log. It never
  /// records this before it is so, and the log is not emptied before it is recorded: whenever the process ends, the
  /// database is complete or the log is there.
  func settle() throws(JournalError) {
    guard try checkpoint() else { throw .refused("\(path): another process reads it") }
    try using { pool in
      try pool.writeWithoutTransaction { db in try db.execute(sql: "PRAGMA user_version = 0") }
    }
    try emptyLog()
    try using { pool in pool.writeWithoutTransaction { db in Self.keepLog(db, false) } }
  }

  /// Sets whether SQLite keeps the log when the last connection is closed (`SQLITE_FCNTL_PERSIST_WAL`).
  private static func keepLog(_ db: Database, _ isKept: Bool) {
    var value: CInt = isKept ? 1 : 0
    sqlite3_file_control(db.sqliteConnection, nil, SQLITE_FCNTL_PERSIST_WAL, &value)
  }

  /// Closes the database, after waiting for every use to end.
  func close() {
    if gate.close() { try? pool.close() }
  }

  /// Writes a database and closes it, with nothing left in its log.
  static func write(to path: String, _ fill: (JournalDatabase) throws(JournalError) -> Void) throws(JournalError) {
    let database = try JournalDatabase(path, .synced)
    do throws(JournalError) {
      try fill(database)
      try database.settle()
    } catch {
      database.close()
      throw error
    }
    database.close()
    guard SystemFile.size(of: "\(path)-wal") == 0 else {
      throw .untrusted("\(path): its log was not moved into the database")
    }
  }

  /// Runs `body` with the pool, which cannot be closed in the meantime.
  private func using<Result>(_ body: (DatabasePool) throws -> Result) throws(JournalError) -> Result {
    guard gate.enter() else { throw .refused("\(path): it is closed") }
    defer { gate.leave() }
    do {
      return try body(pool)
    } catch {
      throw Self.translated(error, path)
    }
  }

  private func writing<Result>(_ body: (Database) throws -> Result) throws(JournalError) -> Result {
    try using { pool in
      var result: Result?
      try pool.writeWithoutTransaction { db in
        try db.inTransaction(.immediate) {
          result = try body(db)
          return .commit
        }
      }
      guard let result else { throw JournalError.untrusted("\(path): a transaction returned no result") }
      return result
    }
  }

  private static func translated(_ error: any Error, _ path: String) -> JournalError {
    if let error = error as? JournalError { return error }
    guard let error = error as? DatabaseError else { return .untrusted("\(path): \(error)") }
    let reason = error.message ?? "\(error.extendedResultCode)"
    switch error.resultCode {
    case .SQLITE_FULL, .SQLITE_READONLY, .SQLITE_BUSY, .SQLITE_LOCKED, .SQLITE_NOMEM:
      return .refused("\(path): \(reason)")
    case .SQLITE_CORRUPT, .SQLITE_NOTADB: return .damaged(place: path, reason: reason)
    case .SQLITE_CANTOPEN, .SQLITE_PERM, .SQLITE_AUTH: return .unusable("\(path): \(reason)")
    default: return .untrusted("\(path): \(reason) (\(error.extendedResultCode.rawValue))")
    }
  }

  // MARK: Revocations

  /// Returns all revocations, ordered by the bytes of their `sub`. Throws `damaged` if one is not as it was written.
  func revocations() throws(JournalError) -> [Revocation] {
    var found: [Revocation] = []
    try readRevocations { revocation throws(JournalError) in
      guard let revocation else { throw self.damagedRevocation }
      found.append(revocation)
    }
    return found
  }

  /// Returns the readable revocations of a store that is to be replaced, so that revoked tokens stay revoked.
  static func revocations(in layout: JournalLayout) -> [Revocation] {
    guard SystemFile.exists(layout.database), let database = try? JournalDatabase(layout.database, .readOnly) else {
      return []
    }
    defer { database.close() }
    return (try? database.wholeRevocations()) ?? []
  }

  /// Returns the revocations that are as they were written.
  func wholeRevocations() throws(JournalError) -> [Revocation] {
    var found: [Revocation] = []
    try readRevocations { if let revocation = $0 { found.append(revocation) } }
    return found
  }

  /// Passes every row to `receive`; nil for one that is not as it was written.
  private func readRevocations(_ receive: (Revocation?) throws -> Void) throws(JournalError) {
    try reading { db in
      // A store of an older version that is only read lacks this table.
      guard try db.tableExists("revocation") else { return }
      let rows = try Row.fetchCursor(
        db, sql: "SELECT subject, milliseconds, digest FROM revocation ORDER BY subject")
      while let row = try rows.next() {
        // A damaged file may hold anything here, of any type.
        guard let bytes = Data.fromDatabaseValue(row[0]), let subject = String(validating: bytes, as: UTF8.self),
          let milliseconds = Int64.fromDatabaseValue(row[1]), let digest = Int64.fromDatabaseValue(row[2]),
          case let revocation = Revocation(subject: subject, milliseconds: milliseconds),
          revocation.digest.value == UInt64(bitPattern: digest)
        else {
          try receive(nil)
          continue
        }
        try receive(revocation)
      }
    }
  }

  private var damagedRevocation: JournalError {
    .damaged(place: path, reason: "a revocation of tokens is not what was written")
  }

  /// Writes revocations, each replacing one of the same `sub`, in one transaction with one sync.
  func write(_ revocations: [Revocation]) throws(JournalError) {
    guard !revocations.isEmpty else { return }
    try writing { db in
      let statement = try db.cachedStatement(
        sql: "INSERT OR REPLACE INTO revocation (subject, milliseconds, digest) VALUES (?, ?, ?)")
      for revocation in revocations {
        try statement.execute(arguments: [
          Data(revocation.key), revocation.milliseconds, Int64(bitPattern: revocation.digest.value),
        ])
      }
    }
  }

  /// Writes the revocation of a `sub`; nil removes it.
  func setRevocation(of subject: String, to milliseconds: Int64?) throws(JournalError) {
    if let milliseconds { return try write([Revocation(subject: subject, milliseconds: milliseconds)]) }
    try writing { db in
      try db.execute(sql: "DELETE FROM revocation WHERE subject = ?", arguments: [Data(subject.utf8)])
    }
  }
}

/// Prevents a resource from being closed while it is in use, and from being used after it was closed.
///
/// Sendable although it holds a class that is not: `NSCondition` is its own lock, and guards both variables.
private final class UseGate: @unchecked Sendable {
  private let condition = NSCondition()
  private var users = 0
  private var isClosed = false

  /// Begins a use, which `leave` ends. Returns false, without beginning one, if the resource is closed.
  func enter() -> Bool {
    condition.lock()
    defer { condition.unlock() }
    guard !isClosed else { return false }
    users += 1
    return true
  }

  /// Ends a use.
  func leave() {
    condition.lock()
    users -= 1
    condition.broadcast()
    condition.unlock()
  }

  /// Admits no further use, and returns when every use has ended. Returns false if it was already closed. Must not be
  /// called during a use.
  func close() -> Bool {
    condition.lock()
    defer { condition.unlock() }
    guard !isClosed else { return false }
    isClosed = true
    while users > 0 { condition.wait() }
    return true
  }
}
