import Glibc
package import Store
import Support

/// A journal in a PostgreSQL database, to which any number of nodes append. A single statement of the database decides
/// each append: it takes effect only if the expected record is still the last. No clock and no lease decides anything.
///
/// `state` holds all mutable state. Its lock is held only briefly, and never while waiting for the database. No other
/// lock is taken under it.
package final class PostgresJournal: SharedJournal {
  /// The options of a journal.
  package struct Options: Sendable {
    /// The address at which other nodes reach this one; it stands in the head when this one has appended.
    package var node = ""
    /// The longest time that a call waits for the database.
    package var patience = WriteTime.whole
    /// The longest time that an append waits for the database, attempts and connections included: as long as a
    /// call, less the time that another node may have had the write before.
    var appendPatience: Duration { max(patience - WriteTime.forwarding, patience / 2) }
    /// The time without an answer of the database after which the journal takes no writes.
    package var silence = Duration.seconds(10)

    /// The defaults.
    package init() {}
  }

  let pool: PostgresPool
  private let options: Options
  private let register: NodeRegister
  let state: Locked<PostgresState>
  private let arrivals = ArrivalSignal()
  /// The signal for records that this node has neither appended nor read.
  private let othersArrivals = ArrivalSignal()
  private let ending = Locked<KeptAction<JournalEnd, Void>?>(nil)
  private let watch: HeadWatch

  /// The limit of the newest records that are kept in memory, in bytes.
  private static let tailBytes = 16 << 20

  /// Opens the journal at an address in libpq's syntax, or creates one with the given identity if the database has
  /// none. Throws `unusable` if the database cannot be reached, or a later version made the journal.
  package convenience init(
    _ address: String, options: Options = Options(), identity: () -> JournalIdentity
  ) throws(JournalError) {
    try self.init(address, options) { identity() }
  }

  /// Opens the existing journal at an address. Throws `unusable` if the database has none.
  package convenience init(existing address: String) throws(JournalError) {
    try self.init(address, Options()) { nil }
  }

  /// Uses the journal at an address without querying it; `position` is known of it. The journal is over as soon as the
  /// database is reached and has another journal, or lacks records up to that position.
  package convenience init(
    _ address: String, options: Options = Options(), known position: JournalPosition
  ) throws(JournalError) {
    try self.init(PostgresPool(address), options, PostgresHead(position), position.identity.schema)
  }

  private convenience init(
    _ address: String, _ options: Options, _ identity: () -> JournalIdentity?
  ) throws(JournalError) {
    let pool = PostgresPool(address)
    let (head, text): (PostgresHead, String)
    do throws(PostgresError) {
      (head, text) = try PostgresOpening(pool: pool, patience: options.patience).run(identity)
    } catch {
      throw .unusable("\(error)")
    }
    try self.init(pool, options, head, text)
  }

  private init(
    _ pool: PostgresPool, _ options: Options, _ head: PostgresHead, _ schemaText: String
  ) throws(JournalError) {
    (self.options, self.pool) = (options, pool)
    register = NodeRegister(url: options.node, patience: options.patience)
    state = Locked(
      PostgresState(
        head: head, schemaText: schemaText, known: (head.last, head.digest),
        tail: RecordTail(byteLimit: Self.tailBytes)))
    watch = try HeadWatch(pool.address, patience: options.patience)
    watch.start(
      HeadWatch.Owner { [weak self] connection, isNotified throws(PostgresError) in
        try self?.look(connection, readingOn: isNotified) ?? false
      } known: { [weak self] in
        self?.state.withLock { ($0.known.revision, $0.isHandedRecords) } ?? (0, false)
      })
  }

  deinit {
    close()
  }

  // MARK: What it is

  /// The epoch and the schema of the journal.
  package var identity: JournalIdentity {
    state.withLock { JournalIdentity(epoch: $0.head.epoch, schema: $0.schemaText) }
  }

  /// The extent of the journal, as far as this node knows.
  package var bounds: JournalBounds { state.withLock { JournalBounds(base: $0.head.base, last: $0.head.last) } }
  /// Always nil, since the journal is not in files.
  package var directory: String? { nil }
  /// Always false, since the database is durable.
  package var isVolatile: Bool { false }

  /// The address of the node that appended last.
  package var pen: String { state.withLock { $0.head.pen } }
  /// True if this node appended last.
  package var hasPen: Bool { pen == options.node }

  /// The number of changes to the revocations, by any node.
  package var revocationChanges: UInt64 { state.withLock { $0.head.revoked } }

  /// The time since the last answer of the database.
  package var silence: Duration { ContinuousClock.now - state.withLock { $0.lastAnswer } }

  // MARK: Its life

  /// See `SharedJournal.whenOver(_:)`. A journal is over if the database has another epoch or schema, or has lost
  /// records that this node has seen.
  package func whenOver(_ action: @escaping @Sendable (JournalEnd) -> Void) {
    ending.withLock { $0 = KeptAction(action) }
    // If the journal ended meanwhile, it has either called the action or missed it.
    if let end = state.withLock({ $0.end }) { report(end) }
  }

  private func report(_ end: JournalEnd) {
    let action = ending.withLock { action in
      defer { action = nil }
      return action
    }
    action?(end)
  }

  /// See `SharedJournal.end(_:)`.
  package func end(_ end: JournalEnd) {
    let isFirst = state.withLock { state in
      defer { state.end = state.end ?? end }
      return state.end == nil
    }
    guard isFirst else { return }
    report(end)
    for arrivals in [arrivals, othersArrivals] { arrivals.announce(.max) }
  }

  /// See `SharedJournal.isMissing()`.
  package func isMissing() throws(JournalError) -> Bool {
    try reading { connection throws(PostgresError) in
      try PostgresOpening(pool: pool, patience: options.patience).read(connection) == nil
    }
  }

  /// See `TransactionJournal.checkPresence()`.
  package func checkPresence() throws(JournalError) {
    try requireUse()
    let silence = silence
    guard silence < options.silence else {
      throw .refused("the database has not answered for \(silence.components.seconds) seconds")
    }
  }

  /// See `TransactionJournal.probe(bytes:)`.
  package func probe(bytes: Int) throws(JournalError) {
    try checkPresence()
    // Writes that arrive meanwhile wait for this.
    _ = try readHead(within: WriteTime.forwarding)
  }

  /// See `TransactionJournal.recover()`. Nothing in memory is better than the database's state.
  package func recover() throws(JournalError) {
    _ = try readHead()
  }

  /// See `TransactionJournal.maintain()`. Does nothing: databases maintain themselves.
  package func maintain() {}

  /// See `TransactionJournal.close()`.
  package func close() {
    state.withLock { $0.isClosed = true }
    watch.stop()
    pool.close()
    for arrivals in [arrivals, othersArrivals] { arrivals.announce(.max) }
  }

  // MARK: The database

  /// Throws `unusable` if the journal is closed, `damaged` if it is over.
  private func requireUse() throws(JournalError) {
    let (isClosed, end) = state.withLock { ($0.isClosed, $0.end) }
    guard !isClosed else { throw .unusable("the journal is closed") }
    if let end { throw .damaged(place: "the database", reason: end.reason) }
  }

  /// Runs a query that changes nothing. Throws `refused` if the database does not answer, or no connection is made by
  /// `deadline`.
  private func reading<Result>(
    before deadline: ContinuousClock.Instant? = nil,
    _ body: (PostgresConnection) throws(PostgresError) -> Result
  ) throws(JournalError) -> Result {
    try requireUse()
    do throws(PostgresError) {
      return try pool.withReading(before: deadline, body)
    } catch {
      throw .refused("\(error)")
    }
  }

  /// Runs a change of the database. Throws `refused` if it was not made, and `untrusted` if that is not known.
  @discardableResult
  private func changing<Result>(
    _ body: (PostgresConnection) throws(PostgresError) -> Result
  ) throws(JournalError) -> Result {
    try requireUse()
    do throws(PostgresError) {
      return try pool.with(body)
    } catch .lost(let reason) {
      throw .untrusted("\(PostgresError.lost(reason))")
    } catch {
      throw .refused("\(error)")
    }
  }

  /// Announces a record to the waiting threads of this node, and to the other nodes.
  private func announce(_ revision: UInt64) {
    arrivals.announce(revision)
    watch.notify(.record(revision))
  }

  /// Notifies the other nodes of a change other than a record.
  private func announceChange() { watch.notify(.change) }

  // MARK: Appending

  /// Advances the head if it is the expected one, and only then inserts the records: one statement, which the database
  /// executes as a whole or not at all. Of several appends at the same position, the database lets one see the head as
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

  /// The bytes that occur in each append sent to the database, and in nothing else: for tests that drop some.
  package static var appendMark: String { appendStatement.mark }

  /// The number of times that an append is repeated after collisions that leave the head unchanged.
  private static let attempts = 5
  /// The time between two attempts to find out the outcome of an append, in microseconds.
  private static let doubtPause: UInt32 = 100_000

  /// See `TransactionJournal.append(_:after:)`. Throws `untrusted` if it is not known whether the records were
  /// appended; another attempt to append the same records after the same revision then succeeds if they were.
  package func append(_ records: [JournalRecord], after expected: UInt64) throws(JournalError) {
    try requireUse()
    try JournalRecord.check(records, follow: expected)
    guard let tip = try digest(at: expected) else {
      throw .unexpectedRevision(expected: expected, last: bounds.last)
    }
    var entries: [(record: JournalRecord, digest: JournalDigest)] = []
    entries.reserveCapacity(records.count)
    for record in records { entries.append((record, (entries.last?.digest ?? tip).linked(to: record))) }
    let append = Append(expected: expected, tip: tip, entries: entries, epoch: identity.epoch)
    state.withLock { $0.appending = append.digest }
    defer { state.withLock { $0.appending = nil } }
    guard try carryOut(append) else {
      // Throws if the journal has not advanced, but is another one.
      try readHead()
      throw .unexpectedRevision(expected: expected, last: bounds.last)
    }
    let last = expected + UInt64(records.count)
    state.withLock { [node = options.node] state in
      state.tail.append(entries)
      state.lastAnswer = .now
      if let digest = entries.last?.digest, last > state.known.revision { state.known = (last, digest) }
      if last > state.head.last {
        (state.head.last, state.head.pen) = (last, node)
        if let digest = entries.last?.digest { state.head.digest = digest }
      }
    }
    announce(last)
  }

  /// The records of an append, and their position.
  private struct Append {
    let expected: UInt64
    let tip: JournalDigest
    let entries: [(record: JournalRecord, digest: JournalDigest)]
    let epoch: String

    var last: UInt64 { expected + UInt64(entries.count) }
    var digest: JournalDigest { entries.last?.digest ?? tip }
  }

  /// Carries out an append. Returns true if it was appended, false if other nodes were first.
  private func carryOut(_ append: Append) throws(JournalError) -> Bool {
    let begin = ContinuousClock.now
    // A first limit leaves time to ask for the outcome if no answer arrives.
    let (halfway, deadline) = (begin + options.appendPatience / 2, begin + options.appendPatience)
    let known = state.withLock { $0.doubt }
    let isAgain = known.map { $0.expected == append.expected && $0.digest == append.digest } ?? false
    let batch = (isAgain ? known?.batch : nil) ?? Int64.random(in: .min ... .max)
    var isInDoubt = isAgain
    var attempts = Self.attempts
    while true {
      do throws(PostgresError) {
        if try send(append, batch, before: .now < halfway ? halfway : deadline) { return settled(true) }
        // Another append was first, or an earlier attempt of this one was.
        guard isInDoubt else { return settled(false) }
        return settled(try exists(append, batch, before: deadline))
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
        // An earlier attempt may have been carried out.
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

  /// Sends an append. Returns true if the head was the expected one.
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

  /// Returns true if the database has this append at its position. Throws if the record there is no longer kept.
  private func exists(
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

  // MARK: Reading

  /// The maximum number of records, and of bytes, in one query.
  private static let chunkRecords = 4_096
  private static let chunkBytes = 8 << 20
  /// The maximum number of bytes queried after a notification; the reader queries the rest.
  private static let notifiedBytes = 1 << 20

  /// See `TransactionJournal.records(after:limit:bytes:waiting:)`. The newest records are in memory; others are queried
  /// from the database, and the call throws `refused` if it does not answer.
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

  /// Queries records from the database.
  private func read(after revision: UInt64, limit: Int, bytes: Int) throws(JournalError) -> [JournalRecord] {
    let known = state.withLock { $0.asking }
    let found = try reading { connection throws(PostgresError) in
      try FoundRecords(after: revision, limit: limit, bytes: bytes, connection, within: options.patience)
    }
    try keep(found, after: revision, asked: known)
    return found.entries.map(\.record)
  }

  /// Checks that records follow those that were read before, and keeps them.
  private func keep(
    _ found: FoundRecords, after revision: UInt64, asked known: PostgresState.Asking
  ) throws(JournalError) {
    let head = found.head
    try check(head, asked: known)
    let base = state.withLock { $0.rebases == known.rebases ? nil : $0.head.base }
    if let base { throw .compacted(base: base) }
    // Threads woken by this find the records in memory.
    defer { keep(head, asked: known) }
    guard revision >= head.base else { throw .compacted(base: head.base) }
    try requireSame(found.digest, at: revision, head)
    let last = try found.check(after: revision)
    state.withLock { state in
      if last.revision > state.known.revision { state.known = last }
      // Records that were read to start from an old snapshot are not needed later.
      if last.revision + UInt64(Self.chunkRecords) > head.last { state.tail.append(found.entries) }
    }
  }

  /// See `SharedJournal.recentRecords(after:limit:bytes:)`.
  package func recentRecords(after revision: UInt64, limit: Int, bytes: Int) -> [JournalRecord]? {
    state.withLock { state in
      revision >= state.head.base ? state.tail.records(after: revision, limit: limit, bytes: bytes) : nil
    }
  }

  /// See `TransactionJournal.digest(at:)`.
  package func digest(at revision: UInt64) throws(JournalError) -> JournalDigest? {
    if let kept = state.withLock({ $0.digest(at: revision) }) { return kept }
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
    let last = try readHead(within: options.appendPatience).last
    guard last == revision else { throw .unexpectedRevision(expected: revision, last: last) }
  }

  /// See `SharedJournal.refresh()`.
  package func refresh() throws(JournalError) { try readHead() }

  // MARK: The head

  /// Queries the head; if `patience` is not nil, it bounds connecting too.
  @discardableResult
  func readHead(within patience: Duration? = nil) throws(JournalError) -> PostgresHead {
    let known = state.withLock { $0.asking }
    let head = try reading(before: patience.map { ContinuousClock.now + $0 }) { connection throws(PostgresError) in
      try PostgresHead.read(connection, within: patience ?? options.patience)
    }
    try note(head, asked: known)
    return head
  }

  /// For the watch: queries the head, and after a notification the new records too, with the same statement. Returns
  /// false if the journal is closed or over.
  private func look(_ connection: PostgresConnection, readingOn isNotified: Bool) throws(PostgresError) -> Bool {
    guard (try? requireUse()) != nil else { return false }
    let known = state.withLock { $0.asking }
    if isNotified {
      let found = try FoundRecords(
        after: known.revision, limit: Self.chunkRecords, bytes: Self.notifiedBytes, connection, within: options.patience
      )
      // The reader finds any damage again, and reports it.
      try? keep(found, after: known.revision, asked: known)
      if let last = found.entries.last?.record.revision { othersArrivals.announce(last) }
    } else {
      let head = try PostgresHead.read(connection, within: options.patience)
      try? note(head, asked: known)
    }
    guard (try? requireUse()) != nil else { return false }
    try register.note(connection)
    return true
  }

  /// Notes a head that was queried when this node knew the record `known`. Throws `damaged` if it is no longer the head
  /// of this journal.
  func note(
    _ head: PostgresHead, asked known: PostgresState.Asking
  ) throws(JournalError) {
    try check(head, asked: known)
    keep(head, asked: known)
  }

  private func check(
    _ head: PostgresHead, asked known: PostgresState.Asking
  ) throws(JournalError) {
    let (present, isOfBefore) = state.withLock { ($0.head, $0.isRebasing || $0.rebases != known.rebases) }
    guard !isOfBefore else { return }
    if head.epoch != present.epoch {
      throw over(
        .otherHistory("the database has the epoch \(head.epoch), and this node started with \(present.epoch)"))
    }
    if head.schema != present.schema { throw over(.otherSchema("the database has continued with another schema")) }
    if head.last < known.revision || (head.last == known.revision && head.digest != known.digest) {
      throw lose(head, known.revision)
    }
  }

  private func keep(_ head: PostgresHead, asked: PostgresState.Asking) {
    guard let newest = state.withLock({ $0.keep(head, asked: asked) }) else { return }
    arrivals.announce(newest.last)
    if newest.isOthers { othersArrivals.announce(newest.last) }
  }

  /// See `SharedJournal.waitForOthers(beyond:for:)`.
  package func waitForOthers(beyond revision: UInt64, for time: Duration) throws(JournalError) {
    try requireUse()
    othersArrivals.wait(beyond: revision, for: time) { 0 }
    try requireUse()
  }

  /// Throws unless the database has the same digest at a revision as this node.
  private func requireSame(
    _ digest: JournalDigest, at revision: UInt64, _ head: PostgresHead
  ) throws(JournalError) {
    let kept = state.withLock { state in
      state.known.revision == revision ? state.known.digest : state.tail.digest(at: revision)
    }
    if let kept, kept != digest { throw lose(head, revision) }
  }

  /// Handles that the database has lost records that this node has seen, and clients may have seen too. From now on
  /// nothing in the present epoch can be trusted, so this ends the epoch, unless another node has ended it already.
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
        "the database is at revision \(head.last), and lacks revision \(revision) of this node; it continues in "
          + "another epoch"))
  }

  private func over(_ end: JournalEnd) -> JournalError {
    self.end(end)
    return .damaged(place: "the database", reason: end.reason)
  }

  // MARK: Records from one node to another

  /// The newest record that this node has appended, read or received from another node, with its digest.
  package var newest: (revision: UInt64, digest: JournalDigest) { state.withLock { $0.known } }

  /// See `SharedJournal.handed(after:_:bytes:)`.
  package func handed(after revision: UInt64, _ digest: JournalDigest, bytes: Int) -> HandedRecords? {
    state.withLock { $0.handed(after: revision, digest, bytes: bytes) }
  }

  /// See `SharedJournal.take(_:)`. From then on the database must have these records: the other node vouches for each.
  package func take(_ handed: HandedRecords) -> Bool {
    guard (try? requireUse()) != nil else { return false }
    let known = newest
    // The digests are computed outside the lock.
    guard let entries = handed.following(on: known.revision, known.digest),
      state.withLock({ $0.take(entries, after: known.revision, pen: handed.pen) })
    else { return false }
    arrivals.announce(entries[entries.count - 1].record.revision)
    return true
  }

  /// See `SharedJournal.nodes()`.
  package func nodes() throws(JournalError) -> [String] {
    try reading { connection throws(PostgresError) in try register.urls(connection) }
  }

  /// See `SharedJournal.vouch(for:)`.
  package func vouch(for nodes: [String]) { register.vouch(for: nodes) }

  // MARK: Revocations

  /// See `TransactionJournal.revocations()`.
  package func revocations() throws(JournalError) -> [Revocation] {
    let found = try reading { connection throws(PostgresError) in
      let result = try connection.execute(
        "SELECT subject, milliseconds, digest FROM keyway.revocations ORDER BY subject", within: options.patience)
      var found: [(revocation: Revocation, digest: UInt64)] = []
      for row in 0..<result.count {
        let subject = String(decoding: result.bytes(row, 0), as: UTF8.self)
        found.append(
          (Revocation(subject: subject, milliseconds: try result.integer(row, 1)), try result.bits(row, 2)))
      }
      return found
    }
    guard found.allSatisfy({ $0.revocation.digest.value == $0.digest }) else {
      throw .damaged(place: "the database, revocations", reason: "they are not what was written")
    }
    return found.map(\.revocation)
  }

  /// See `TransactionJournal.setRevocation(of:to:)`. Notifies the other nodes of the change.
  package func setRevocation(of subject: String, to milliseconds: Int64?) throws(JournalError) {
    let patience = options.patience
    try changing { connection throws(PostgresError) in
      try connection.transaction(within: patience) { () throws(PostgresError) in
        if let milliseconds {
          let revocation = Revocation(subject: subject, milliseconds: milliseconds)
          try connection.execute(
            """
            INSERT INTO keyway.revocations VALUES ($1, $2, $3)
            ON CONFLICT (subject) DO UPDATE SET milliseconds = $2, digest = $3
            """, [.bytes(revocation.key), .integer(milliseconds), .bits(revocation.digest.value)], within: patience)
        } else {
          try connection.execute(
            "DELETE FROM keyway.revocations WHERE subject = $1", [.bytes(Array(subject.utf8))], within: patience)
        }
        try connection.execute("UPDATE keyway.head SET revoked = revoked + 1", within: patience)
      }
    }
    announceChange()
  }

  // MARK: Snapshots

  // A snapshot is blocks in a table, which are written one after the other under a random number. A row of
  // `keyway.snapshots` then names that number, which turns all of them into a snapshot at once.

  /// See `TransactionJournal.snapshots()`.
  package func snapshots() throws(JournalError) -> [JournalSnapshot] {
    try reading { connection throws(PostgresError) in
      let result = try connection.execute(
        """
        SELECT s.revision, s.digest FROM keyway.snapshots s JOIN keyway.head h ON s.revision BETWEEN h.base AND h.last
        LEFT JOIN keyway.records r ON r.revision = s.revision
        WHERE s.digest = COALESCE(r.digest, h.base_digest) ORDER BY s.revision DESC
        """, within: options.patience)
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
  package func writeSnapshot(
    at revision: UInt64, milliseconds: Int64, _ next: () throws -> [UInt8]?
  ) throws(JournalError) {
    guard revision <= bounds.last, revision >= bounds.base,
      let digest = try digest(at: revision)
    else {
      throw .invalid("the journal does not hold revision \(revision)")
    }
    let blocks = try writeBlocks(next)
    try inMaintenance { connection throws(PostgresError) in
      try name(blocks, revision, digest, milliseconds, connection)
      // Blocks of a node that stopped while it wrote a snapshot.
      try connection.execute(
        "DELETE FROM keyway.blocks WHERE writing NOT IN (SELECT writing FROM keyway.snapshots)",
        within: options.patience)
    }
  }

  /// Blocks that were written, and do not belong to a snapshot yet.
  private struct Blocks {
    let writing = Int64.random(in: .min ... .max)
    var count: Int64 = 0
    var contents = JournalDigest.start
  }

  private func writeBlocks(_ next: () throws -> [UInt8]?) throws(JournalError) -> Blocks {
    var blocks = Blocks()
    while let block = try JournalError.block(next) {
      let (writing, number) = (blocks.writing, blocks.count)
      try changing { connection throws(PostgresError) in
        try connection.execute(
          "INSERT INTO keyway.blocks VALUES ($1, $2, $3)", [.integer(writing), .integer(number), .bytes(block)],
          within: options.patience)
      }
      blocks.count += 1
      blocks.contents = blocks.contents.linked(to: block)
    }
    return blocks
  }

  /// Turns blocks into a snapshot, which replaces the one of its revision. Throws if another node has deleted the
  /// blocks meanwhile.
  private func name(
    _ blocks: Blocks, _ revision: UInt64, _ digest: JournalDigest, _ milliseconds: Int64,
    _ connection: PostgresConnection
  ) throws(PostgresError) {
    let patience = options.patience
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

  /// Changes snapshots under a lock against other nodes, in one transaction.
  private func inMaintenance(_ body: (PostgresConnection) throws(PostgresError) -> Void) throws(JournalError) {
    try changing { connection throws(PostgresError) in
      try connection.transaction(within: options.patience) { () throws(PostgresError) in
        try connection.execute("SELECT one FROM keyway.maintenance FOR UPDATE", within: options.patience)
        try body(connection)
      }
    }
  }

  /// See `TransactionJournal.readSnapshot(_:_:)`.
  package func readSnapshot(_ snapshot: JournalSnapshot, _ receive: ([UInt8]) throws -> Void) throws {
    let place = "the database, snapshot of revision \(snapshot.revision)"
    let head = try reading { connection throws(PostgresError) in
      let result = try connection.execute(
        "SELECT writing, blocks, contents FROM keyway.snapshots WHERE revision = $1 AND digest = $2",
        [.bits(snapshot.revision), .bits(snapshot.digest.value)], within: options.patience)
      return result.count == 0
        ? nil : (writing: try result.integer(0, 0), count: try result.integer(0, 1), try result.bits(0, 2))
    }
    guard let (writing, count, contents) = head else {
      throw JournalError.invalid("the snapshot of revision \(snapshot.revision) does not exist")
    }
    var link = JournalDigest.start
    for number in 0..<count {
      let block = try reading { connection throws(PostgresError) in
        let result = try connection.execute(
          "SELECT body FROM keyway.blocks WHERE writing = $1 AND number = $2", [.integer(writing), .integer(number)],
          within: options.patience)
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

  /// The maximum number of records that one statement deletes.
  private static let removalCount: Int64 = 2_000

  /// See `TransactionJournal.compact(upTo:)`.
  package func compact(upTo revision: UInt64) throws(JournalError) {
    try requireUse()
    guard revision > bounds.base else { return }
    guard try snapshots().contains(where: { $0.revision == revision }) else {
      throw .invalid("the snapshot of revision \(revision) does not exist")
    }
    // Advance the base first: records before it are no longer read, even if the rest fails.
    try inMaintenance { connection throws(PostgresError) in
      try connection.execute(
        """
        UPDATE keyway.head SET base = $1, base_digest = (SELECT digest FROM keyway.records WHERE revision = $1)
        WHERE base < $1 AND EXISTS (SELECT 1 FROM keyway.records WHERE revision = $1)
        """, [.bits(revision)], within: options.patience)
      try connection.execute(
        "DELETE FROM keyway.snapshots WHERE revision < $1", [.bits(revision)], within: options.patience)
      try connection.execute(
        "DELETE FROM keyway.blocks WHERE writing NOT IN (SELECT writing FROM keyway.snapshots)",
        within: options.patience)
    }
    try readHead()
    try removeRecords(upTo: revision)
  }

  private func removeRecords(upTo revision: UInt64) throws(JournalError) {
    while true {
      let removed = try changing { connection throws(PostgresError) in
        try connection.execute(
          """
          DELETE FROM keyway.records
          WHERE revision IN (SELECT revision FROM keyway.records WHERE revision <= $1 ORDER BY revision LIMIT $2)
          """, [.bits(revision), .integer(Self.removalCount)], within: options.patience
        ).changedCount
      }
      guard removed >= Int(Self.removalCount) else { return }
    }
  }

  /// See `TransactionJournal.rebase(to:schema:milliseconds:_:)`. Succeeds only if no other node has appended meanwhile.
  package func rebase(
    to revision: UInt64, schema: String, milliseconds: Int64, _ next: () throws -> [UInt8]?
  ) throws(JournalError) {
    let head = try readHead()
    guard revision == head.last || revision == head.last + 1 else {
      throw .unexpectedRevision(expected: revision, last: head.last)
    }
    let digest = JournalDigest.rebased(to: revision, schema: schema)
    let blocks = try writeBlocks(next)
    var rebased = head
    (rebased.schema, rebased.base, rebased.last) = (PostgresHead.digest(ofSchema: schema), revision, revision)
    (rebased.baseDigest, rebased.digest) = (digest, digest)
    state.withLock { $0.isRebasing = true }
    defer { state.withLock { $0.isRebasing = false } }
    let isDone = try begin(rebased, after: head, schema, blocks, milliseconds)
    guard isDone else { throw .unexpectedRevision(expected: revision, last: bounds.last) }
    state.withLock { state in
      (state.head, state.schemaText, state.known) = (rebased, schema, (revision, digest))
      state.tail = RecordTail(byteLimit: Self.tailBytes)
      state.rebases += 1
    }
    try removeRecords(upTo: head.last)
  }

  /// Replaces the head, and the snapshots. Returns false if the head is not the expected one.
  private func begin(
    _ rebased: PostgresHead, after head: PostgresHead, _ schema: String, _ blocks: Blocks, _ milliseconds: Int64
  ) throws(JournalError) -> Bool {
    let patience = options.patience
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
