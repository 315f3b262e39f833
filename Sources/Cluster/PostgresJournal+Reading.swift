package import Store
import Support

extension PostgresJournal {
  /// The most records, and bytes, that are asked for at a time.
  private static let chunkRecords = 4_096
  private static let chunkBytes = 8 << 20
  /// The most bytes that are asked for when others have told of records; who reads on asks for the rest.
  private static let toldBytes = 1 << 20

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

  /// Reads some records.
  private func read(after revision: UInt64, limit: Int, bytes: Int) throws(JournalError) -> [JournalRecord] {
    let known = state.withLock { $0.asking }
    let found = try reading { connection throws(PostgresError) in
      try FoundRecords(after: revision, limit: limit, bytes: bytes, connection, within: options.patience)
    }
    try keep(found, after: revision, asked: known)
    return found.entries.map(\.record)
  }

  /// Looks whether records follow on what was read before, and keeps them.
  private func keep(
    _ found: FoundRecords, after revision: UInt64, asked known: PostgresState.Asking
  ) throws(JournalError) {
    let head = found.head
    try check(head, asked: known)
    let base = state.withLock { $0.rebases == known.rebases ? nil : $0.head.base }
    if let base { throw .compacted(base: base) }
    // Those whom it wakes find the records here.
    defer { keep(head, asked: known) }
    guard revision >= head.base else { throw .compacted(base: head.base) }
    try requireSame(found.digest, at: revision, head)
    let last = try found.check(after: revision)
    state.withLock { state in
      if last.revision > state.known.revision { state.known = last }
      // What was read to start from an old snapshot is of no use later.
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

  /// Asks for the head; `patience` bounds the connection too, where it is not nil.
  @discardableResult
  func readHead(within patience: Duration? = nil) throws(JournalError) -> PostgresHead {
    let known = state.withLock { $0.asking }
    let head = try reading(before: patience.map { ContinuousClock.now + $0 }) { connection throws(PostgresError) in
      try PostgresHead.read(connection, within: patience ?? options.patience)
    }
    try note(head, asked: known)
    return head
  }

  /// For the watch: asks for the head, and where others have told of records for those as well, by the same statement.
  /// False where the journal is closed or over.
  func look(_ connection: PostgresConnection, readingOn isTold: Bool) throws(PostgresError) -> Bool {
    guard (try? requireUse()) != nil else { return false }
    let known = state.withLock { $0.asking }
    if isTold {
      let found = try FoundRecords(
        after: known.revision, limit: Self.chunkRecords, bytes: Self.toldBytes, connection, within: options.patience)
      // Who reads on finds what is wrong with them once more, and says so.
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

  /// Takes note of a head that was asked for when this node knew the record `known`. Throws `damaged` where it is not
  /// that of this journal any more.
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
        .otherHistory("the database has the epoch \(head.epoch), and this node began with \(present.epoch)"))
    }
    if head.schema != present.schema { throw over(.otherSchema("the database has gone on under another schema")) }
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
