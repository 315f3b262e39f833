import Glibc
package import Journal
import Locking

/// A journal in a PostgreSQL database, which any number of nodes append to. What is appended is decided by one
/// statement of the database alone, which holds for no more than the record that was expected to be the last; no clock
/// and no lease decides anything.
///
/// `state` is all that changes, under its lock, which is held for a look and never while the database is waited for. No
/// other lock is taken inside it.
package final class PostgresJournal: SharedJournal {
  struct State {
    /// The newest head that was seen.
    var head: PostgresHead
    /// The text of the schema that `head` names.
    var schemaText: String
    /// The furthest record that was read here, or appended: what the database must never be without.
    var known: (revision: UInt64, digest: JournalDigest)
    var tail: RecordTail
    /// The last append whose outcome is not known.
    var doubt: AppendDoubt?
    /// When the database was last heard.
    var heard = ContinuousClock.now
    /// Whether this node is about to begin the journal anew, so that another head is what it makes itself.
    var isRebasing = false
    /// Why this journal is over.
    var end: String?
    var isClosed = false
  }

  /// How a journal is used.
  package struct Options: Sendable {
    /// The address at which other nodes reach this one; it stands in the head when this one has appended.
    package var node = ""
    /// How long a call waits for the database.
    package var patience = Duration.seconds(5)
    /// After how long without an answer of the database the journal takes no writes.
    package var silence = Duration.seconds(10)

    /// The defaults.
    package init() {}
  }

  let pool: PostgresPool
  let options: Options
  let register: NodeRegister
  let state: Locked<State>
  let arrivals = ArrivalSignal()
  let ending: Locked<(@Sendable (String) -> Void)?> = Locked(nil)
  private let watch: HeadWatch

  /// How often the tables are made where other nodes are making them, too.
  private static let openingAttempts = 50
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

  private init(
    _ address: String, _ options: Options, _ identity: () -> JournalIdentity?
  ) throws(JournalError) {
    self.options = options
    register = NodeRegister(url: options.node, patience: options.patience)
    pool = PostgresPool(address)
    do throws(PostgresError) {
      let (head, text) = try Self.open(pool, options, identity)
      state = Locked(
        State(
          head: head, schemaText: text, known: (head.last, head.digest), tail: RecordTail(byteLimit: Self.tailBytes)))
    } catch {
      throw .unusable("\(error)")
    }
    watch = try HeadWatch(address, patience: options.patience)
    watch.start { [weak self] connection throws(PostgresError) in try self?.look(connection) ?? false }
  }

  deinit {
    close()
  }

  private static func open(
    _ pool: PostgresPool, _ options: Options, _ identity: () -> JournalIdentity?
  ) throws(PostgresError) -> (PostgresHead, String) {
    var attempts = openingAttempts
    while true {
      do throws(PostgresError) {
        return try pool.withReading { connection throws(PostgresError) in
          if let found = try read(connection, options.patience) { return found }
          guard let identity = identity() else { throw .refused(code: "", "there is no journal in it") }
          try make(identity, connection, options)
          guard let made = try read(connection, options.patience) else { throw .unexpected("the head is missing") }
          return made
        }
      } catch {
        // Two nodes that make the tables at the same time are told so.
        attempts -= 1
        guard error.isCollision, attempts > 0 else { throw error }
        usleep(.random(in: 1_000...50_000))
      }
    }
  }

  /// The head, with the text of its schema; nil where there is none.
  private static func read(
    _ connection: PostgresConnection, _ patience: Duration
  ) throws(PostgresError) -> (PostgresHead, String)? {
    do throws(PostgresError) {
      let found = try connection.execute(
        """
        SELECT \(PostgresLayout.headColumns), s.text FROM keyway.head h JOIN keyway.schemas s ON s.digest = h.schema
        """, within: patience)
      guard found.count == 1 else { return nil }
      return (try PostgresHead(found), found.text(0, PostgresLayout.headColumnCount))
    } catch {
      guard error.isMissingTable else { throw error }
      return nil
    }
  }

  private static func make(
    _ identity: JournalIdentity, _ connection: PostgresConnection, _ options: Options
  ) throws(PostgresError) {
    for statement in PostgresLayout.statements { try connection.execute(statement, within: options.patience) }
    let schema = PostgresHead.digest(ofSchema: identity.schema)
    try connection.execute(
      "INSERT INTO keyway.schemas VALUES ($1, $2) ON CONFLICT DO NOTHING", [.bits(schema), .text(identity.schema)],
      within: options.patience)
    try connection.execute(
      "INSERT INTO keyway.head VALUES (1, $1, $2, $3, 0, $4, 0, $4, '', 0) ON CONFLICT DO NOTHING",
      [
        .integer(PostgresLayout.version), .text(identity.epoch), .bits(schema), .bits(JournalDigest.start.value),
      ], within: options.patience)
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

  /// Calls `action` once, from any thread, where this journal comes to be over: the database has another epoch, another
  /// schema, or has lost what this node has seen. What it says is for the operator.
  package func whenOver(_ action: @escaping @Sendable (String) -> Void) {
    if let end = state.withLock({ $0.end }) { return action(end) }
    ending.withLock { $0 = action }
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
    _ = try readHead()
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
    arrivals.announce(.max)
  }

  // MARK: The database

  /// Throws `unusable` where it is closed, `damaged` where it is over.
  func requireUse() throws(JournalError) {
    let (isClosed, end) = state.withLock { ($0.isClosed, $0.end) }
    guard !isClosed else { throw .unusable("the journal is closed") }
    if let end { throw .damaged(place: "the database", reason: end) }
  }

  /// Asks the database for something that changes nothing. Throws `refused` where it does not answer.
  func reading<Result>(
    _ body: (PostgresConnection) throws(PostgresError) -> Result
  ) throws(JournalError) -> Result {
    try requireUse()
    do throws(PostgresError) {
      return try pool.withReading(body)
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
    watch.notify()
  }

  /// Tells the other nodes that there is something new that is no record.
  func announceChange() { watch.notify() }
}
