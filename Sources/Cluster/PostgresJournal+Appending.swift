import Glibc
package import Store
import Support

extension PostgresJournal {
  /// Moves the head on where it is what is expected, and only then inserts the records: one statement, which the
  /// database carries out as a whole or not at all. Of several at the same place the database lets one see the head as
  /// it was; the others wait for it, and then find another head.
  private static let appendStatement = PostgresStatement(
    name: "keyway_append",
    text: """
      WITH moved AS (
        UPDATE keyway.head SET last = $4, digest = $5, pen = $6
        WHERE last = $1 AND digest = $2 AND epoch = $3 RETURNING last)
      INSERT INTO keyway.records (revision, milliseconds, digest, batch, body)
      SELECT r.revision, r.milliseconds, r.digest, $7, r.body
      FROM moved, unnest($8::bigint[], $9::bigint[], $10::bigint[], $11::bytea[])
        AS r(revision, milliseconds, digest, body)
      """)

  /// What stands in the bytes of each append on its way to the database, and of nothing else: for tests that lose some.
  package static var appendMark: String { appendStatement.mark }

  /// How often an append is tried where others got in the way and the head is as it was.
  private static let attempts = 5
  /// Between two attempts to find out what became of an append, in microseconds.
  private static let doubtPause: UInt32 = 100_000

  /// See `TransactionJournal.append(_:after:)`. Throws `untrusted` where it is not known whether the records were
  /// appended; the same records after the same revision, appended again, then succeed if they were.
  package func append(_ records: [JournalRecord], after expected: UInt64) throws(JournalError) {
    try requireUse()
    try JournalRecord.check(records, follow: expected)
    guard let tip = try digest(at: expected) else {
      throw .unexpectedRevision(expected: expected, last: bounds.last)
    }
    var entries: [(record: JournalRecord, digest: JournalDigest)] = []
    entries.reserveCapacity(records.count)
    for record in records { entries.append((record, (entries.last?.digest ?? tip).linked(to: record))) }
    let isAppended = try carryOut(Append(expected: expected, tip: tip, entries: entries, epoch: identity.epoch))
    guard isAppended else {
      // Which throws where the journal has not gone on, but is another.
      try readHead()
      throw .unexpectedRevision(expected: expected, last: bounds.last)
    }
    let last = expected + UInt64(records.count)
    state.withLock { [node = options.node] state in
      state.tail.append(entries)
      state.heard = .now
      if let digest = entries.last?.digest, last > state.known.revision { state.known = (last, digest) }
      if last > state.head.last {
        (state.head.last, state.head.pen) = (last, node)
        if let digest = entries.last?.digest { state.head.digest = digest }
      }
    }
    announce(last)
  }

  /// What is to be appended.
  private struct Append {
    let expected: UInt64
    let tip: JournalDigest
    let entries: [(record: JournalRecord, digest: JournalDigest)]
    let epoch: String

    var last: UInt64 { expected + UInt64(entries.count) }
    var digest: JournalDigest { entries.last?.digest ?? tip }
  }

  /// Whether it was appended; false where others were first.
  private func carryOut(_ append: Append) throws(JournalError) -> Bool {
    let begin = ContinuousClock.now
    // An answer that is lost in silence leaves time to ask again what came of it.
    let (halfway, deadline) = (begin + options.appendPatience / 2, begin + options.appendPatience)
    let known = state.withLock { $0.doubt }
    let isAgain = known.map { $0.expected == append.expected && $0.digest == append.digest } ?? false
    let batch = (isAgain ? known?.batch : nil) ?? Int64.random(in: .min ... .max)
    var isInDoubt = isAgain
    var attempts = Self.attempts
    while true {
      do throws(PostgresError) {
        if try send(append, batch, before: .now < halfway ? halfway : deadline) { return settled(true) }
        // Others were first, or this one was, before it was asked again.
        guard isInDoubt else { return settled(false) }
        return settled(try isThere(append, batch, before: deadline))
      } catch .lost(let reason) {
        isInDoubt = true
        state.withLock { state in
          state.doubt = AppendDoubt(expected: append.expected, digest: append.digest, batch: batch)
        }
        guard .now < deadline else {
          throw .untrusted("it is not known whether it was written: \(PostgresError.lost(reason))")
        }
      } catch {
        if error.isCollision, attempts > 0 {
          attempts -= 1
          continue
        }
        // What was refused now may have been carried out before.
        guard isInDoubt else { throw .refused("\(error)") }
        guard .now < deadline else { throw .untrusted("it is not known whether it was written: \(error)") }
      }
      try requireUse()
      usleep(Self.doubtPause)
    }
  }

  private func settled(_ isAppended: Bool) -> Bool {
    state.withLock { $0.doubt = nil }
    return isAppended
  }

  /// Whether the head was as expected.
  private func send(
    _ append: Append, _ batch: Int64, before deadline: ContinuousClock.Instant
  ) throws(PostgresError) -> Bool {
    let parameters: [PostgresParameter] = [
      .bits(append.expected), .bits(append.tip.value), .text(append.epoch), .bits(append.last),
      .bits(append.digest.value), .text(options.node), .integer(batch),
      .integers(append.entries.map { Int64(bitPattern: $0.record.revision) }),
      .integers(append.entries.map(\.record.milliseconds)),
      .integers(append.entries.map { Int64(bitPattern: $0.digest.value) }),
      .byteStrings(append.entries.map(\.record.body)),
    ]
    let result = try pool.with(before: deadline) { connection throws(PostgresError) in
      try connection.execute(Self.appendStatement, parameters, within: deadline - .now)
    }
    switch result.changedCount {
    case 0: return false
    case append.entries.count: return true
    default: throw .unexpected("\(result.changedCount) of \(append.entries.count) records were inserted")
    }
  }

  /// Whether what the database has at the append's place is this append. Throws where it has no record there any more.
  private func isThere(
    _ append: Append, _ batch: Int64, before deadline: ContinuousClock.Instant
  ) throws(PostgresError) -> Bool {
    let result = try pool.withReading(before: deadline) { connection throws(PostgresError) in
      try connection.execute(
        """
        SELECT h.base, r.batch, r.digest FROM keyway.head h LEFT JOIN keyway.records r ON r.revision = $1
        """, [.bits(append.last)], within: deadline - .now)
    }
    guard result.count == 1 else { throw .unexpected("the head is missing") }
    guard try result.bits(0, 0) < append.last else { throw .unexpected("the record is no longer kept") }
    guard !result.isNull(0, 1) else { return false }
    let (found, digest) = (try result.integer(0, 1), try result.bits(0, 2))
    return found == batch && digest == append.digest.value
  }
}
