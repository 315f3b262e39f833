import Store
import Support

/// Snapshots: blocks in a table, written one after the other under a random number, and then named by a row of
/// `keyway.snapshots`, by which they come to be a snapshot all at once.
struct PostgresSnapshots {
  let journal: PostgresJournal

  /// See `TransactionJournal.snapshots()`.
  func snapshots() throws(JournalError) -> [JournalSnapshot] {
    try journal.reading { connection throws(PostgresError) in
      let result = try connection.execute(
        """
        SELECT s.revision, s.digest FROM keyway.snapshots s JOIN keyway.head h ON s.revision BETWEEN h.base AND h.last
        LEFT JOIN keyway.records r ON r.revision = s.revision
        WHERE s.digest = COALESCE(r.digest, h.base_digest) ORDER BY s.revision DESC
        """, within: journal.options.patience)
      var found: [JournalSnapshot] = []
      for row in 0..<result.count {
        found.append(
          JournalSnapshot(
            revision: try result.bits(row, 0), digest: JournalDigest(value: try result.bits(row, 1))))
      }
      return found
    }
  }

  /// See `TransactionJournal.writeSnapshot(at:milliseconds:_:)`.
  func writeSnapshot(
    at revision: UInt64, milliseconds: Int64, _ next: () throws -> [UInt8]?
  ) throws(JournalError) {
    guard revision <= journal.bounds.last, revision >= journal.bounds.base,
      let digest = try journal.digest(at: revision)
    else {
      throw .invalid("the journal does not hold revision \(revision)")
    }
    let blocks = try writeBlocks(next)
    try inMaintenance { connection throws(PostgresError) in
      try name(blocks, revision, digest, milliseconds, connection)
      // What a node has left that ended in the midst of it.
      try connection.execute(
        "DELETE FROM keyway.blocks WHERE writing NOT IN (SELECT writing FROM keyway.snapshots)",
        within: journal.options.patience)
    }
  }

  /// Blocks that were written, and are no snapshot yet.
  private struct Blocks {
    let writing = Int64.random(in: .min ... .max)
    var count: Int64 = 0
    var contents = JournalDigest.start
  }

  private func writeBlocks(_ next: () throws -> [UInt8]?) throws(JournalError) -> Blocks {
    var blocks = Blocks()
    while let block = try Self.block(next) {
      let (writing, number) = (blocks.writing, blocks.count)
      try journal.changing { connection throws(PostgresError) in
        try connection.execute(
          "INSERT INTO keyway.blocks VALUES ($1, $2, $3)", [.integer(writing), .integer(number), .bytes(block)],
          within: journal.options.patience)
      }
      blocks.count += 1
      blocks.contents = blocks.contents.linked(to: block)
    }
    return blocks
  }

  private static func block(_ next: () throws -> [UInt8]?) throws(JournalError) -> [UInt8]? {
    do {
      return try next()
    } catch {
      throw .invalid("the state cannot be written down: \(error)")
    }
  }

  /// Makes a snapshot of blocks, in the place of the one of its revision. Throws where another node has taken the
  /// blocks away meanwhile.
  private func name(
    _ blocks: Blocks, _ revision: UInt64, _ digest: JournalDigest, _ milliseconds: Int64,
    _ connection: PostgresConnection
  ) throws(PostgresError) {
    let patience = journal.options.patience
    let left = try connection.execute(
      "SELECT COUNT(*) FROM keyway.blocks WHERE writing = $1", [.integer(blocks.writing)], within: patience)
    guard try left.integer(0, 0) == blocks.count else {
      throw .unexpected("another node has written a snapshot meanwhile")
    }
    try connection.execute(
      """
      INSERT INTO keyway.snapshots VALUES ($1, $2, $3, $4, $5, $6)
      ON CONFLICT (revision) DO UPDATE SET digest = $2, milliseconds = $3, writing = $4, blocks = $5, contents = $6
      """,
      [
        .bits(revision), .bits(digest.value), .integer(milliseconds), .integer(blocks.writing),
        .integer(blocks.count), .bits(blocks.contents.value),
      ], within: patience)
  }

  /// Changes snapshots while no other node does: all of it or nothing.
  private func inMaintenance(_ body: (PostgresConnection) throws(PostgresError) -> Void) throws(JournalError) {
    try journal.changing { connection throws(PostgresError) in
      try connection.transaction(within: journal.options.patience) { () throws(PostgresError) in
        try connection.execute("SELECT one FROM keyway.maintenance FOR UPDATE", within: journal.options.patience)
        try body(connection)
      }
    }
  }

  /// See `TransactionJournal.readSnapshot(_:_:)`.
  func readSnapshot(_ snapshot: JournalSnapshot, _ receive: ([UInt8]) throws -> Void) throws {
    let place = "the database, snapshot of revision \(snapshot.revision)"
    let head = try journal.reading { connection throws(PostgresError) in
      let result = try connection.execute(
        "SELECT writing, blocks, contents FROM keyway.snapshots WHERE revision = $1 AND digest = $2",
        [.bits(snapshot.revision), .bits(snapshot.digest.value)], within: journal.options.patience)
      return result.count == 0
        ? nil : (writing: try result.integer(0, 0), count: try result.integer(0, 1), try result.bits(0, 2))
    }
    guard let (writing, count, contents) = head else {
      throw JournalError.invalid("there is no such snapshot of revision \(snapshot.revision)")
    }
    var link = JournalDigest.start
    for number in 0..<count {
      let block = try journal.reading { connection throws(PostgresError) in
        let result = try connection.execute(
          "SELECT body FROM keyway.blocks WHERE writing = $1 AND number = $2", [.integer(writing), .integer(number)],
          within: journal.options.patience)
        return result.count == 1 ? result.bytes(0, 0) : nil
      }
      guard let block else { throw JournalError.damaged(place: place, reason: "block \(number) is missing") }
      link = link.linked(to: block)
      try receive(block)
    }
    guard link.value == contents else {
      throw JournalError.damaged(place: place, reason: "it is not what was written")
    }
  }

  // MARK: Forgetting

  /// The most records that are taken away by one statement.
  private static let removalCount: Int64 = 2_000

  /// See `TransactionJournal.compact(upTo:)`.
  func compact(upTo revision: UInt64) throws(JournalError) {
    try journal.requireUse()
    guard revision > journal.bounds.base else { return }
    guard try snapshots().contains(where: { $0.revision == revision }) else {
      throw .invalid("there is no snapshot of revision \(revision)")
    }
    // First what the records begin with: what is before it is not read any more, whatever becomes of the rest.
    try inMaintenance { connection throws(PostgresError) in
      try connection.execute(
        """
        UPDATE keyway.head SET base = $1, base_digest = (SELECT digest FROM keyway.records WHERE revision = $1)
        WHERE base < $1 AND EXISTS (SELECT 1 FROM keyway.records WHERE revision = $1)
        """, [.bits(revision)], within: journal.options.patience)
      try connection.execute(
        "DELETE FROM keyway.snapshots WHERE revision < $1", [.bits(revision)], within: journal.options.patience)
      try connection.execute(
        "DELETE FROM keyway.blocks WHERE writing NOT IN (SELECT writing FROM keyway.snapshots)",
        within: journal.options.patience)
    }
    try journal.readHead()
    try removeRecords(upTo: revision)
  }

  private func removeRecords(upTo revision: UInt64) throws(JournalError) {
    while true {
      let removed = try journal.changing { connection throws(PostgresError) in
        try connection.execute(
          """
          DELETE FROM keyway.records
          WHERE revision IN (SELECT revision FROM keyway.records WHERE revision <= $1 ORDER BY revision LIMIT $2)
          """, [.bits(revision), .integer(Self.removalCount)], within: journal.options.patience
        ).changedCount
      }
      guard removed >= Int(Self.removalCount) else { return }
    }
  }

  /// See `TransactionJournal.rebase(to:schema:milliseconds:_:)`. Only where no other node has appended meanwhile.
  func rebase(
    to revision: UInt64, schema: String, milliseconds: Int64, _ next: () throws -> [UInt8]?
  ) throws(JournalError) {
    let head = try journal.readHead()
    guard revision == head.last || revision == head.last + 1 else {
      throw .unexpectedRevision(expected: revision, last: head.last)
    }
    let digest = JournalDigest.rebased(to: revision, schema: schema)
    let blocks = try writeBlocks(next)
    var rebased = head
    (rebased.schema, rebased.base, rebased.last) = (PostgresHead.digest(ofSchema: schema), revision, revision)
    (rebased.baseDigest, rebased.digest) = (digest, digest)
    journal.state.withLock { $0.isRebasing = true }
    defer { journal.state.withLock { $0.isRebasing = false } }
    let isDone = try begin(rebased, after: head, schema, blocks, milliseconds)
    guard isDone else { throw .unexpectedRevision(expected: revision, last: journal.bounds.last) }
    journal.state.withLock { state in
      (state.head, state.schemaText, state.known) = (rebased, schema, (revision, digest))
      state.tail = RecordTail(byteLimit: PostgresJournal.tailBytes)
      state.rebases += 1
    }
    try removeRecords(upTo: head.last)
  }

  /// False where the head is not what was expected.
  private func begin(
    _ rebased: PostgresHead, after head: PostgresHead, _ schema: String, _ blocks: Blocks, _ milliseconds: Int64
  ) throws(JournalError) -> Bool {
    let patience = journal.options.patience
    var isDone = false
    try inMaintenance { connection throws(PostgresError) in
      try connection.execute(
        "INSERT INTO keyway.schemas VALUES ($1, $2) ON CONFLICT DO NOTHING", [.bits(rebased.schema), .text(schema)],
        within: patience)
      let moved = try connection.execute(
        """
        UPDATE keyway.head SET schema = $1, base = $2, base_digest = $3, last = $2, digest = $3
        WHERE epoch = $4 AND last = $5 AND digest = $6
        """,
        [
          .bits(rebased.schema), .bits(rebased.base), .bits(rebased.baseDigest.value), .text(head.epoch),
          .bits(head.last), .bits(head.digest.value),
        ], within: patience)
      isDone = moved.changedCount == 1
      guard isDone else { return }
      try connection.execute("DELETE FROM keyway.snapshots", within: patience)
      try name(blocks, rebased.base, rebased.baseDigest, milliseconds, connection)
      try connection.execute(
        "DELETE FROM keyway.blocks WHERE writing <> $1", [.integer(blocks.writing)], within: patience)
    }
    return isDone
  }
}
