import DequeModule
import Store

/// A node's knowledge of the journal in a database. `PostgresJournal` has it under its lock.
struct PostgresState {
  /// The newest head that was seen.
  var head: PostgresHead
  /// The text of the schema that `head` names.
  var schemaText: String
  /// The newest record that was read or appended here: the database must never lack it.
  var known: (revision: UInt64, digest: JournalDigest)
  var tail: RecordTail
  /// The time when another node last sent records to this one.
  private(set) var taken: ContinuousClock.Instant?
  /// The digest that the head will have after the append under way; nil if none is.
  var appending: JournalDigest?
  /// The last append whose outcome is not known.
  var doubt: AppendDoubt?
  /// The time of the last answer of the database.
  var lastAnswer = ContinuousClock.now
  /// True while this node rebases the journal, so that it causes another head itself.
  var isRebasing = false
  /// The number of times that this node has rebased the journal.
  var rebases = 0
  /// The reason why this journal is over; nil if it is not.
  var end: JournalEnd?
  var isClosed = false

  /// Returns the digest at a revision; nil if this node does not have it in memory.
  func digest(at revision: UInt64) -> JournalDigest? {
    if revision == known.revision { return known.digest }
    if revision == head.base { return head.baseDigest }
    return tail.digest(at: revision)
  }

  /// The newest record that a node knew when it queried the database, and the number of its rebases at that time.
  struct Asking {
    let revision: UInt64
    let digest: JournalDigest
    let rebases: Int
  }

  /// The present values.
  var asking: Asking { Asking(revision: known.revision, digest: known.digest, rebases: rebases) }

  /// Notes a head that the database returned. Returns the newest revision, and whether this node lacks records of other
  /// nodes. Returns nil if this node is rebasing the journal, or has done so since the query.
  mutating func keep(_ seen: PostgresHead, asked: Asking) -> (last: UInt64, isOthers: Bool)? {
    guard !isRebasing, asked.rebases == rebases else { return nil }
    lastAnswer = .now
    let (base, revoked) = (max(seen.base, head.base), max(seen.revoked, head.revoked))
    // Several threads send queries, and answers may overtake each other.
    if seen.last >= head.last {
      if seen.base < base {
        (head.last, head.digest, head.pen) = (seen.last, seen.digest, seen.pen)
      } else {
        head = seen
      }
    }
    head.revoked = revoked
    // An append of this node, of which it has no answer yet, is not another node's.
    return (head.last, head.last > known.revision && head.digest != appending)
  }

  /// Returns the records that another node lacks which has reached a revision with this digest, with at most `bytes` in
  /// the bodies. Returns nil if there are none in memory.
  func handed(after revision: UInt64, _ digest: JournalDigest, bytes: Int) -> HandedRecords? {
    guard !isRebasing, end == nil, self.digest(at: revision) == digest,
      let found = tail.records(after: revision, limit: .max, bytes: bytes)
    else { return nil }
    var rest = bytes
    let records = found.prefix { record in
      rest -= record.body.count
      return rest >= 0
    }
    guard let last = records.last?.revision, let digest = tail.digest(at: last) else { return nil }
    return HandedRecords(Array(records), digest: digest, pen: head.pen)
  }

  /// Takes over records that another node sent when this one had reached `place`; `appender` is the address of the node
  /// that appended last. Returns false if the records that were read or appended meanwhile differ, or include all of
  /// these.
  mutating func take(
    _ entries: [(record: JournalRecord, digest: JournalDigest)], after place: UInt64, pen appender: String
  ) -> Bool {
    guard !isRebasing, end == nil, let newest = entries.last, known.revision < newest.record.revision,
      known.revision == place
        || entries.contains(where: { $0.record.revision == known.revision && $0.digest == known.digest })
    else { return false }
    tail.append(entries)
    known = (newest.record.revision, newest.digest)
    taken = .now
    if newest.record.revision > head.last {
      (head.last, head.digest, head.pen) = (newest.record.revision, newest.digest, appender)
    }
    return true
  }

  /// True if other nodes have sent records to this one in the last moments, so that newly announced records are likely
  /// to be on their way too.
  var isHandedRecords: Bool { taken.map { $0 + Self.handing > .now } ?? false }

  /// The length of these moments.
  private static let handing = Duration.milliseconds(100)
}

/// An append whose outcome is not known. Its random number identifies it when it is attempted again, so that it is not
/// mistaken for an equal append of another node.
struct AppendDoubt: Sendable {
  let expected: UInt64
  /// The digest that its last record would have.
  let digest: JournalDigest
  let batch: Int64
}

/// The newest records of a journal, with their digests, up to a size limit, so that requests of followers need no query
/// to the database.
struct RecordTail {
  private var entries: Deque<(record: JournalRecord, digest: JournalDigest)> = []
  private var bytes = 0
  private let byteLimit: Int
  /// The size that is counted for each record in addition to its body, in bytes.
  private static let overheadBytes = 96

  /// Creates an empty tail.
  init(byteLimit: Int) { self.byteLimit = byteLimit }

  /// Adds the records that follow the newest one, and skips those that are present already. A record that does not
  /// follow replaces all others.
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

  /// Returns the records after a revision, at most `limit`, and none after those before have `bytes`, but at least one.
  /// Returns nil if the records are not in memory.
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

  /// Returns the digest at a revision; nil if its record is not in memory.
  func digest(at revision: UInt64) -> JournalDigest? { index(of: revision).map { entries[$0].digest } }

  private func index(of revision: UInt64) -> Int? {
    guard let first = entries.first?.record.revision, revision >= first, revision - first < UInt64(entries.count) else {
      return nil
    }
    return Int(revision - first)
  }
}
