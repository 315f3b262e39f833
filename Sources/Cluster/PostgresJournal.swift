import Glibc
package import Store
import Support

/// A journal in a PostgreSQL database, which any number of nodes append to. What is appended is decided by one
/// statement of the database alone, which holds for no more than the record that was expected to be the last; no clock
/// and no lease decides anything.
///
/// `state` is all that changes, under its lock, which is held for a look and never while the database is waited for. No
/// other lock is taken inside it.
package final class PostgresJournal: SharedJournal {
  /// How a journal is used.
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
  let options: Options
  let register: NodeRegister
  let state: Locked<PostgresState>
  let arrivals = ArrivalSignal()
  /// The same for what this node has neither appended nor read.
  let othersArrivals = ArrivalSignal()
  let ending = Locked<KeptAction<JournalEnd, Void>?>(nil)
  private let watch: HeadWatch

  /// What is kept of the newest records.
  static let tailBytes = 16 << 20

  /// Opens the journal at an address, as libpq reads it, or makes one that is what `identity` says where the database
  /// has none. Throws `unusable` where it cannot be reached, or a later version has made it.
  package convenience init(
    _ address: String, options: Options = Options(), identity: () -> JournalIdentity
  ) throws(JournalError) {
    try self.init(address, options) { identity() }
  }

  /// Opens the journal at an address. Throws `unusable` where the database has none.
  package convenience init(existing address: String) throws(JournalError) {
    try self.init(address, Options()) { nil }
  }

  /// Uses the journal at an address of which this is known, without asking: it is over as soon as the database is heard
  /// and has another one, or lacks what is known.
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
      HeadWatch.Owner { [weak self] connection, isTold throws(PostgresError) in
        try self?.look(connection, readingOn: isTold) ?? false
      } known: { [weak self] in
        self?.state.withLock { ($0.known.revision, $0.isHandedRecords) } ?? (0, false)
      })
  }

  deinit {
    close()
  }

  // MARK: What it is

  /// What the journal is.
  package var identity: JournalIdentity {
    state.withLock { JournalIdentity(epoch: $0.head.epoch, schema: $0.schemaText) }
  }

  /// How far it reaches, as far as this node has heard.
  package var bounds: JournalBounds { state.withLock { JournalBounds(base: $0.head.base, last: $0.head.last) } }
  /// It is in none.
  package var directory: String? { nil }
  /// The database keeps it.
  package var isVolatile: Bool { false }

  /// The address of the node that appended last.
  package var pen: String { state.withLock { $0.head.pen } }
  /// Whether this node appended last.
  package var hasPen: Bool { pen == options.node }

  /// How often the revocations were changed by any node.
  package var revocationChanges: UInt64 { state.withLock { $0.head.revoked } }

  /// How long ago the database was last heard.
  package var silence: Duration { ContinuousClock.now - state.withLock { $0.heard } }

  // MARK: Its life

  /// See `SharedJournal.whenOver(_:)`: the database has another epoch, another schema, or has lost what this node has
  /// seen.
  package func whenOver(_ action: @escaping @Sendable (JournalEnd) -> Void) {
    ending.withLock { $0 = KeptAction(action) }
    // One that ended meanwhile has taken the action, or left it.
    if let end = state.withLock({ $0.end }) { tell(end) }
  }

  private func tell(_ end: JournalEnd) {
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
    tell(end)
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
      throw .refused("the database has not been heard for \(silence.components.seconds) seconds")
    }
  }

  /// See `TransactionJournal.probe(bytes:)`.
  package func probe(bytes: Int) throws(JournalError) {
    try checkPresence()
    // Writes that come meanwhile wait for it.
    _ = try readHead(within: WriteTime.forwarding)
  }

  /// See `TransactionJournal.recover()`: there is nothing in memory that the database does not know better.
  package func recover() throws(JournalError) {
    _ = try readHead()
  }

  /// See `TransactionJournal.maintain()`: databases look after themselves.
  package func maintain() {}

  /// See `TransactionJournal.close()`.
  package func close() {
    state.withLock { $0.isClosed = true }
    watch.stop()
    pool.close()
    for arrivals in [arrivals, othersArrivals] { arrivals.announce(.max) }
  }

  // MARK: The database

  /// Throws `unusable` where it is closed, `damaged` where it is over.
  func requireUse() throws(JournalError) {
    let (isClosed, end) = state.withLock { ($0.isClosed, $0.end) }
    guard !isClosed else { throw .unusable("the journal is closed") }
    if let end { throw .damaged(place: "the database", reason: end.reason) }
  }

  /// Asks the database for something that changes nothing. Throws `refused` where it does not answer, or where no
  /// connection stands by `deadline`.
  func reading<Result>(
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

  /// Has the database change something. Throws `refused` where it did not, and `untrusted` where that is not known.
  @discardableResult
  func changing<Result>(
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

  /// Tells those who wait here, and the other nodes, of a record.
  func announce(_ revision: UInt64) {
    arrivals.announce(revision)
    watch.notify(.record(revision))
  }

  /// Tells the other nodes that there is something new that is no record.
  func announceChange() { watch.notify(.change) }
}
