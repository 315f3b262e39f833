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
