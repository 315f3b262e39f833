import Foundation
import Store

/// A store in a folder of its own, to be damaged. It is removed with this object.
final class StoreFolder {
  static let identity = JournalIdentity(epoch: "aaaa", schema: "entities: {A: {}}\n")
  /// The ending of the names of files that are moved aside.
  static let time = "20231114T221320Z"

  let path = FileManager.default.temporaryDirectory.appendingPathComponent("keyway-store-\(UUID().uuidString)").path

  /// Creates a store with records and snapshots, and closes it.
  init(
    records count: Int, snapshots: [UInt64] = [], compactedUpTo base: UInt64 = 0
  ) throws {
    try use { journal in
      if count > 0 { try journal.append((1...count).map { Self.record(UInt64($0)) }, after: 0) }
      for revision in snapshots { try Self.write(journal, revision) }
      if base > 0 { try journal.compact(upTo: base) }
    }
  }

  /// Creates a store with records as a killed process leaves it: they are in the log.
  init(killedAfter count: Int, snapshots: [UInt64] = []) throws {
    let living = try StoreFolder(records: 0)
    let copied = path
    try living.use { journal in
      try journal.append((1...count).map { Self.record(UInt64($0)) }, after: 0)
      for revision in snapshots { try Self.write(journal, revision) }
      try FileManager.default.copyItem(atPath: living.path, toPath: copied)
    }
  }

  /// Creates an exact copy of another one.
  init(copying other: StoreFolder) throws {
    try FileManager.default.copyItem(atPath: other.path, toPath: path)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  static func record(_ revision: UInt64) -> JournalRecord {
    let text = "<body of \(revision)>" + String(repeating: "x", count: Int(revision % 7) * 100)
    return JournalRecord(revision: revision, milliseconds: Int64(revision), body: Array(text.utf8))
  }

  static func write(_ journal: SQLiteJournal, _ revision: UInt64) throws {
    var blocks = ["state of \(revision)", "and more"][...]
    try journal.writeSnapshot(at: revision, milliseconds: 5) { blocks.popFirst().map { Array($0.utf8) } }
  }

  /// Opens it as a server does, and closes it: then everything is in the database, and its log is empty.
  @discardableResult
  func use<Result>(_ body: (SQLiteJournal) throws -> Result) throws -> Result {
    let journal = try SQLiteJournal(directory: path, durability: .synced) { Self.identity }
    defer { journal.close() }
    return try body(journal)
  }

  func repair(until: UInt64, schema: String? = nil) throws(JournalError) -> JournalRepair {
    try SQLiteJournal.repair(
      directory: path, until: until, milliseconds: 1_700_000_000_000, schema: schema, newEpoch: { "bbbb" })
  }

  func inspect<Result>(_ body: (JournalInspection) throws -> Result) throws -> Result {
    let inspection = try JournalInspection(directory: path)
    defer { inspection.close() }
    return try body(inspection)
  }

  // MARK: Files

  func file(_ name: String) -> String { "\(path)/\(name)" }

  static func snapshot(_ revision: UInt64) -> String {
    let digits = String(revision)
    return "snapshots/" + String(repeating: "0", count: 20 - digits.count) + digits + ".snapshot"
  }

  func has(_ name: String) -> Bool { FileManager.default.fileExists(atPath: file(name)) }

  func bytes(_ name: String) throws -> Data { try Data(contentsOf: URL(fileURLWithPath: file(name))) }

  func write(_ name: String, _ bytes: Data) throws { try bytes.write(to: URL(fileURLWithPath: file(name))) }

  func remove(_ name: String) throws { try FileManager.default.removeItem(atPath: file(name)) }

  func rename(_ name: String, to other: String) throws {
    try FileManager.default.moveItem(atPath: file(name), toPath: file(other))
  }

  /// Copies a file from another store, or removes the present one if that store has none.
  func take(_ name: String, from other: StoreFolder) throws {
    if has(name) { try remove(name) }
    if other.has(name) { try FileManager.default.copyItem(atPath: other.file(name), toPath: file(name)) }
  }

  func names(in folder: String = "") throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: file(folder)).sorted()
  }

  /// Changes one byte of a text in a file.
  func damage(_ name: String, at text: String) throws {
    var bytes = try bytes(name)
    guard let range = bytes.range(of: Data(text.utf8)) else { throw Missing() }
    bytes[range.lowerBound] ^= 1
    try write(name, bytes)
  }

  struct Missing: Error {}

  func damage(record revision: UInt64) throws { try damage("journal.sqlite", at: "<body of \(revision)>") }

  /// Returns the contents of the journal, and the epoch.
  func contents() throws -> (epoch: String, bounds: JournalBounds, records: [JournalRecord], snapshots: [UInt64]) {
    try use { journal in
      let records = try journal.records(after: journal.bounds.base, limit: .max, bytes: .max, waiting: .zero)
      return (journal.identity.epoch, journal.bounds, records, try journal.snapshots().map(\.revision))
    }
  }
}
