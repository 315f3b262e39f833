import DequeModule
import Store

/// The newest records of a journal, with their digests, as far as they fit in so many bytes: what those who follow it
/// ask for need not be asked of the database again.
struct RecordTail {
  private var entries: Deque<(record: JournalRecord, digest: JournalDigest)> = []
  private var bytes = 0
  private let byteLimit: Int
  /// What is counted for each record beside its body.
  private static let overheadBytes = 96

  /// No records.
  init(byteLimit: Int) { self.byteLimit = byteLimit }

  /// The newest record's revision and digest.
  var last: (revision: UInt64, digest: JournalDigest)? { entries.last.map { ($0.record.revision, $0.digest) } }

  /// Adds what follows on the newest record; what is there already is passed over. What does not follow replaces all.
  mutating func append(_ added: some Sequence<(record: JournalRecord, digest: JournalDigest)>) {
    for entry in added {
      if let last = entries.last?.record.revision {
        if entry.record.revision <= last { continue }
        if entry.record.revision > last + 1 { (entries, bytes) = ([], 0) }
      }
      entries.append(entry)
      bytes += entry.record.body.count + Self.overheadBytes
      while bytes > byteLimit, let first = entries.popFirst() {
        bytes -= first.record.body.count + Self.overheadBytes
      }
    }
  }

  /// The records after a revision, `limit` at most, and no more once they have come to `bytes`, but at least one. Nil
  /// where they are not here.
  func records(after revision: UInt64, limit: Int, bytes: Int) -> [JournalRecord]? {
    guard let index = index(of: revision + 1) else { return nil }
    var found: [JournalRecord] = []
    var size = 0
    for entry in entries[index...].prefix(max(1, limit)) {
      found.append(entry.record)
      size += entry.record.body.count
      if size >= bytes { break }
    }
    return found
  }

  /// The digest at a revision, where its record is here.
  func digest(at revision: UInt64) -> JournalDigest? { index(of: revision).map { entries[$0].digest } }

  private func index(of revision: UInt64) -> Int? {
    guard let first = entries.first?.record.revision, revision >= first, revision - first < UInt64(entries.count) else {
      return nil
    }
    return Int(revision - first)
  }
}
