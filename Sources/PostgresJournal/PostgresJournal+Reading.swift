package import Journal
import Locking

extension PostgresJournal {
  /// The head, and the records after a revision with the digest that they follow on, in one look: at least one row, in
  /// which `revision` is null where there is none. No more records than `$2`, nor once those before have `$3` bytes.
  private static let recordsStatement = PostgresStatement(
    name: "keyway_records",
    text: """
      SELECT \(PostgresLayout.headColumns),
        COALESCE((SELECT digest FROM keyway.records WHERE revision = $1), h.base_digest),
        r.revision, r.milliseconds, r.digest, r.body
      FROM keyway.head h LEFT JOIN (
        SELECT revision, milliseconds, digest, body,
          SUM(octet_length(body)) OVER (ORDER BY revision) - octet_length(body) AS bytes_before
        FROM (SELECT * FROM keyway.records WHERE revision > $1 ORDER BY revision LIMIT $2) AS found
      ) AS r ON r.bytes_before < $3
      ORDER BY r.revision
      """)
  private static let headStatement = PostgresStatement(
    name: "keyway_head", text: "SELECT \(PostgresLayout.headColumns) FROM keyway.head h")

  /// The most records, and bytes, that are asked for at a time.
  private static let chunkRecords = 4_096
  private static let chunkBytes = 8 << 20

  /// See `TransactionJournal.records(after:limit:bytes:waiting:)`. What is among the newest costs nothing; the rest is
  /// asked of the database, and throws `refused` where it does not answer.
  package func records(
    after revision: UInt64, limit: Int, bytes: Int, waiting: Duration
  ) throws(JournalError) -> [JournalRecord] {
    try requireUse()
    if waiting > .zero {
      arrivals.wait(beyond: revision, for: waiting) { self.bounds.last }
      try requireUse()
    }
    if let kept = state.withLock({ $0.tail.records(after: revision, limit: limit, bytes: bytes) }) {
      guard revision >= bounds.base else { throw .compacted(base: bounds.base) }
      return kept
    }
    guard revision < bounds.last else {
      guard revision >= bounds.base else { throw .compacted(base: bounds.base) }
      return []
    }
    var found: [JournalRecord] = []
    var size = 0
    while found.count < limit, found.isEmpty || size < bytes {
      let more = try read(
        after: found.last?.revision ?? revision, limit: min(limit - found.count, Self.chunkRecords),
        bytes: min(bytes - size, Self.chunkBytes))
      guard !more.isEmpty else { break }
      found += more
      size += more.reduce(0) { $0 + $1.body.count }
    }
    return found
  }

  /// Reads some records, and looks whether they are what was written, and follow on what was read before.
  private func read(after revision: UInt64, limit: Int, bytes: Int) throws(JournalError) -> [JournalRecord] {
    let known = state.withLock { $0.known }
    let (head, digest, entries) = try reading { connection throws(PostgresError) in
      let result = try connection.execute(
        Self.recordsStatement,
        [.bits(revision), .integer(Int64(max(1, limit))), .integer(Int64(max(1, bytes)))], within: options.patience)
      guard result.count > 0 else { throw .unexpected("the head is missing") }
      return (
        try PostgresHead(result), JournalDigest(value: try result.bits(0, PostgresLayout.headColumnCount)),
        try Self.entries(result)
      )
    }
    try note(head, asked: known)
    guard revision >= head.base else { throw .compacted(base: head.base) }
    try requireSame(digest, at: revision, head)
    var link = digest
    var next = revision
    for (record, digest) in entries {
      next += 1
      link = link.linked(to: record)
      guard record.revision == next, link == digest else {
        throw .damaged(place: "the database, revision \(next)", reason: "it is not what was written")
      }
    }
    guard !entries.isEmpty || head.last <= revision else {
      throw .damaged(place: "the database, revision \(revision + 1)", reason: "it is missing")
    }
    state.withLock { state in
      if next > state.known.revision { state.known = (next, link) }
      // What was read to start from an old snapshot is of no use later.
      if next + UInt64(Self.chunkRecords) > head.last { state.tail.append(entries) }
    }
    return entries.map(\.record)
  }

  /// See `SharedJournal.recentRecords(after:limit:bytes:)`.
  package func recentRecords(after revision: UInt64, limit: Int, bytes: Int) -> [JournalRecord]? {
    state.withLock { state in
      revision >= state.head.base ? state.tail.records(after: revision, limit: limit, bytes: bytes) : nil
    }
  }

  private static func entries(
    _ result: PostgresResult
  ) throws(PostgresError) -> [(record: JournalRecord, digest: JournalDigest)] {
    let first = PostgresLayout.headColumnCount + 1
    var entries: [(record: JournalRecord, digest: JournalDigest)] = []
    for row in 0..<result.count where !result.isNull(row, first) {
      let record = JournalRecord(
        revision: try result.bits(row, first), milliseconds: try result.integer(row, first + 1),
        body: result.bytes(row, first + 3))
      entries.append((record, JournalDigest(value: try result.bits(row, first + 2))))
    }
    return entries
  }

  /// See `TransactionJournal.digest(at:)`.
  package func digest(at revision: UInt64) throws(JournalError) -> JournalDigest? {
    let kept = state.withLock { state -> JournalDigest? in
      if revision == state.known.revision { return state.known.digest }
      if revision == state.head.base { return state.head.baseDigest }
      return state.tail.digest(at: revision)
    }
    if let kept { return kept }
    return try reading { connection throws(PostgresError) in
      let result = try connection.execute(
        """
        SELECT digest FROM keyway.records WHERE revision = $1
        UNION ALL SELECT base_digest FROM keyway.head WHERE base = $1
        """, [.bits(revision)], within: options.patience)
      return result.count == 0 ? nil : JournalDigest(value: try result.bits(0, 0))
    }
  }

  /// See `SharedJournal.confirm(_:)`.
  package func confirm(_ revision: UInt64) throws(JournalError) {
    let last = try readHead().last
    guard last == revision else { throw .unexpectedRevision(expected: revision, last: last) }
  }

  /// See `SharedJournal.refresh()`.
  package func refresh() throws(JournalError) { try readHead() }

  // MARK: The head

  /// Asks for the head.
  @discardableResult
  func readHead() throws(JournalError) -> PostgresHead {
    let known = state.withLock { $0.known }
    let head = try reading { connection throws(PostgresError) in try Self.head(connection, options.patience) }
    try note(head, asked: known)
    return head
  }

  private static func head(
    _ connection: PostgresConnection, _ patience: Duration
  ) throws(PostgresError) -> PostgresHead {
    let result = try connection.execute(headStatement, [], within: patience)
    guard result.count == 1 else { throw .unexpected("the head is missing") }
    return try PostgresHead(result)
  }

  /// For the watch: asks for the head. False where the journal is closed or over.
  func look(_ connection: PostgresConnection) throws(PostgresError) -> Bool {
    guard (try? requireUse()) != nil else { return false }
    let known = state.withLock { $0.known }
    let head = try Self.head(connection, options.patience)
    guard (try? note(head, asked: known)) != nil else { return false }
    try register.note(connection)
    return true
  }

  /// Takes note of a head that was asked for when this node knew the record `known`. Throws `damaged` where it is not
  /// that of this journal any more.
  private func note(
    _ head: PostgresHead, asked known: (revision: UInt64, digest: JournalDigest)
  ) throws(JournalError) {
    let (present, isRebasing) = state.withLock { ($0.head, $0.isRebasing) }
    guard !isRebasing else { return }
    if head.epoch != present.epoch {
      throw over(
        .otherHistory("the database has the epoch \(head.epoch), and this node began with \(present.epoch)"))
    }
    if head.schema != present.schema { throw over(.otherSchema("the database has gone on under another schema")) }
    if head.last < known.revision || (head.last == known.revision && head.digest != known.digest) {
      throw lose(head, known.revision)
    }
    let last = state.withLock { state in
      state.heard = .now
      let (base, revoked) = (max(head.base, state.head.base), max(head.revoked, state.head.revoked))
      // Several threads ask, and one answer may overtake another.
      if head.last >= state.head.last {
        if head.base < base {
          (state.head.last, state.head.digest, state.head.pen) = (head.last, head.digest, head.pen)
        } else {
          state.head = head
        }
      }
      state.head.revoked = revoked
      return state.head.last
    }
    arrivals.announce(last)
    if last > state.withLock({ $0.known.revision }) { othersArrivals.announce(last) }
  }

  /// See `SharedJournal.waitForOthers(beyond:for:)`.
  package func waitForOthers(beyond revision: UInt64, for time: Duration) throws(JournalError) {
    try requireUse()
    othersArrivals.wait(beyond: revision, for: time) { 0 }
    try requireUse()
  }

  /// Throws unless what the database has at a revision is what this node has there.
  private func requireSame(
    _ digest: JournalDigest, at revision: UInt64, _ head: PostgresHead
  ) throws(JournalError) {
    let kept = state.withLock { state in
      state.known.revision == revision ? state.known.digest : state.tail.digest(at: revision)
    }
    if let kept, kept != digest { throw lose(head, revision) }
  }

  /// The database has lost records that this node has seen: clients may have seen them too. From now on nothing that
  /// has the present epoch is right, so the epoch ends, unless another node has ended it already.
  private func lose(_ head: PostgresHead, _ revision: UInt64) -> JournalError {
    let present = state.withLock { $0.head.epoch }
    let epoch = String(UInt64.random(in: 1 << 32...1 << 62), radix: 36)
    _ = try? pool.with { connection throws(PostgresError) in
      try connection.execute(
        "UPDATE keyway.head SET epoch = $1 WHERE epoch = $2 AND last = $3 AND digest = $4",
        [.text(epoch), .text(present), .bits(head.last), .bits(head.digest.value)], within: options.patience)
    }
    return over(
      .otherHistory(
        "the database is at revision \(head.last), and lacks what this node has of revision \(revision); it goes on in "
          + "another epoch"))
  }

  private func over(_ end: JournalEnd) -> JournalError {
    self.end(end)
    return .damaged(place: "the database", reason: end.reason)
  }
}
