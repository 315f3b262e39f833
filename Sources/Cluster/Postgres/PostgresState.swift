import DequeModule
import Store

/// What a node knows of the journal in a database. `PostgresJournal` has it under its lock.
struct PostgresState {
  /// The newest head that was seen.
  var head: PostgresHead
  /// The text of the schema that `head` names.
  var schemaText: String
  /// The furthest record that was read here, or appended: what the database must never be without.
  var known: (revision: UInt64, digest: JournalDigest)
  var tail: RecordTail
  /// When another node handed records to this one last.
  private(set) var taken: ContinuousClock.Instant?
  /// The digest that the head has once the append that is under way is done; nil where none is.
  var appending: JournalDigest?
  /// The last append whose outcome is not known.
  var doubt: AppendDoubt?
  /// When the database was last heard.
  var heard = ContinuousClock.now
  /// True if this node is about to begin the journal anew, so that another head is what it makes itself.
  var isRebasing = false
  /// The number of times that this node has begun the journal anew.
  var rebases = 0
  /// Why this journal is over.
  var end: JournalEnd?
  var isClosed = false

  /// The digest at a revision, where this node has it.
  func digest(at revision: UInt64) -> JournalDigest? {
    if revision == known.revision { return known.digest }
    if revision == head.base { return head.baseDigest }
    return tail.digest(at: revision)
  }

  /// The newest record that a node knew when it asked the database, and how often it had begun the journal anew.
  struct Asking {
    let revision: UInt64
    let digest: JournalDigest
    let rebases: Int
  }

  /// The same as of now.
  var asking: Asking { Asking(revision: known.revision, digest: known.digest, rebases: rebases) }

  /// Takes note of what the database has said; gives how far it is, and whether this node lacks some of it. Nil where
  /// this node is about to make another head, or has made one since it asked.
  mutating func keep(_ seen: PostgresHead, asked: Asking) -> (last: UInt64, isOthers: Bool)? {
    guard !isRebasing, asked.rebases == rebases else { return nil }
    heard = .now
    let (base, revoked) = (max(seen.base, head.base), max(seen.revoked, head.revoked))
    // Several threads ask, and one answer may overtake another.
    if seen.last >= head.last {
      if seen.base < base {
        (head.last, head.digest, head.pen) = (seen.last, seen.digest, seen.pen)
      } else {
        head = seen
      }
    }
    head.revoked = revoked
    // What this node is about to learn that it has appended is not of another.
    return (head.last, head.last > known.revision && head.digest != appending)
  }

  /// What another node lacks that has come as far as a revision with this digest, with no more than `bytes` in the
  /// bodies. Nil where there is none. What is among the newest was appended, or read.
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

  /// Takes over records that another node has handed to this one when it had come as far as `place`; `appender` is the
  /// address of the node that appended last. False where what was read or appended meanwhile is not the same, or is all
  /// of it.
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

  /// Whether records were handed to this node in the last moments, so that those of which it hears now are likely to be
  /// on their way too.
  var isHandedRecords: Bool { taken.map { $0 + Self.handing > .now } ?? false }

  /// How long ago that was at most.
  private static let handing = Duration.milliseconds(100)
}

/// An append whose outcome is not known: the same one, asked for again, is known by its number, so that it is not taken
/// for an equal one of another node.
struct AppendDoubt: Sendable {
  let expected: UInt64
  /// What the digest at its last record would be.
  let digest: JournalDigest
  let batch: Int64
}

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
