import Foundation
import GRDB

/// The table of revocations.
extension JournalDatabase {
  /// All of them, by the bytes of their `sub`. Throws `damaged` where one is not what was written.
  func revocations() throws(JournalError) -> [Revocation] {
    var found: [Revocation] = []
    try readRevocations { revocation throws(JournalError) in
      guard let revocation else { throw self.damagedRevocation }
      found.append(revocation)
    }
    return found
  }

  /// Those of a store that is to be replaced, as far as they can be read: who was shut out stays so.
  static func revocations(in layout: JournalLayout) -> [Revocation] {
    guard SystemFile.exists(layout.database), let database = try? JournalDatabase(layout.database, .readOnly) else {
      return []
    }
    defer { database.close() }
    return (try? database.wholeRevocations()) ?? []
  }

  /// Those that are what was written.
  func wholeRevocations() throws(JournalError) -> [Revocation] {
    var found: [Revocation] = []
    try readRevocations { if let revocation = $0 { found.append(revocation) } }
    return found
  }

  /// Gives every row; nil for one that is not what was written.
  private func readRevocations(_ receive: (Revocation?) throws -> Void) throws(JournalError) {
    try reading { db in
      // A store of a version without them that is only read has no such table.
      guard try db.tableExists("revocation") else { return }
      let rows = try Row.fetchCursor(
        db, sql: "SELECT subject, milliseconds, digest FROM revocation ORDER BY subject")
      while let row = try rows.next() {
        // Where the file is damaged anything may stand there, of any type.
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
    .damaged(place: place, reason: "a revocation of tokens is not what was written")
  }

  /// Writes revocations, each in the place of one of the same `sub`, in one transaction with one sync.
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

  /// Writes the revocation of a `sub`, or takes it away.
  func setRevocation(of subject: String, to milliseconds: Int64?) throws(JournalError) {
    if let milliseconds { return try write([Revocation(subject: subject, milliseconds: milliseconds)]) }
    try writing { db in
      try db.execute(sql: "DELETE FROM revocation WHERE subject = ?", arguments: [Data(subject.utf8)])
    }
  }
}
