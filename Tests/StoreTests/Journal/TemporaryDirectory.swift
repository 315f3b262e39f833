import Foundation
import Store

/// A directory that is removed with this object.
final class TemporaryDirectory: Sendable {
  let path: String

  init() throws {
    path = FileManager.default.temporaryDirectory.appending(path: "keyway-journal-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit {
    try? FileManager.default.removeItem(atPath: path)
  }

  var store: String { "\(path)/store" }
}

let identity = JournalIdentity(epoch: "k3f9ab", schema: "entities: {}\n")

func openJournal(
  in directory: TemporaryDirectory, _ durability: SQLiteJournal.Durability = .synced
) throws -> SQLiteJournal {
  try SQLiteJournal(directory: directory.store, durability: durability) { identity }
}

func record(_ revision: UInt64, _ text: String? = nil) -> JournalRecord {
  JournalRecord(
    revision: revision, milliseconds: 1_700_000_000_000 + Int64(revision),
    body: Array((text ?? "body of \(revision)").utf8))
}

func records(_ revisions: ClosedRange<UInt64>) -> [JournalRecord] { revisions.map { record($0) } }

extension TransactionJournal {
  /// Returns all records after a revision.
  func all(after revision: UInt64 = 0) throws(JournalError) -> [JournalRecord] {
    try records(after: revision, limit: .max, bytes: .max, waiting: .zero)
  }

  func write(snapshotAt revision: UInt64, _ blocks: [String]) throws(JournalError) {
    var rest = blocks[...]
    try writeSnapshot(at: revision, milliseconds: 7) { rest.popFirst().map { Array($0.utf8) } }
  }

  func blocks(of snapshot: JournalSnapshot) throws -> [String] {
    var blocks: [String] = []
    try readSnapshot(snapshot) { blocks.append(String(decoding: $0, as: UTF8.self)) }
    return blocks
  }
}
