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
  var taken: ContinuousClock.Instant?
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
    return (head.last, head.last > known.revision)
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
