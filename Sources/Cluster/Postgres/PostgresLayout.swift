import Glibc
import Store

/// The tables of a journal, in the schema `keyway` of its database: one store in each database.
///
/// They use only features of every database that speaks PostgreSQL's language: no extension, no function of their own,
/// no lock but that of a row. `keyway.head` has one row, which every append changes if it is the expected one: so of
/// two appends at the same position one succeeds.
enum PostgresLayout {
  /// The version of the tables. It increases with every change that an earlier program would not understand.
  static let version: Int64 = 1

  /// Creates the table of the addresses of the nodes that use the journal, with the times when they last registered.
  static let nodes = "CREATE TABLE IF NOT EXISTS keyway.nodes (url text PRIMARY KEY, heard timestamptz NOT NULL)"

  /// Creates the tables that do not exist.
  fileprivate static let statements = [
    "CREATE SCHEMA IF NOT EXISTS keyway",
    // The texts of schemas, by their digests: they are too long to rewrite with every change of the head.
    """
    CREATE TABLE IF NOT EXISTS keyway.schemas (digest bigint PRIMARY KEY, text text NOT NULL)
    """,
    // `pen`: the address of the node that appended last. `revoked`: the number of changes to the revocations.
    """
    CREATE TABLE IF NOT EXISTS keyway.head (
      one bigint PRIMARY KEY CHECK (one = 1), layout bigint NOT NULL, epoch text NOT NULL, schema bigint NOT NULL,
      base bigint NOT NULL, base_digest bigint NOT NULL, last bigint NOT NULL, digest bigint NOT NULL,
      pen text NOT NULL, revoked bigint NOT NULL)
    """,
    // `batch`: a random number by which a node recognizes its append.
    """
    CREATE TABLE IF NOT EXISTS keyway.records (
      revision bigint PRIMARY KEY, milliseconds bigint NOT NULL, digest bigint NOT NULL, batch bigint NOT NULL,
      body bytea NOT NULL)
    """,
    // `writing`: the random number of the blocks, which are written before the snapshot exists. `contents`: the digest
    // of the chain of the blocks.
    """
    CREATE TABLE IF NOT EXISTS keyway.snapshots (
      revision bigint PRIMARY KEY, digest bigint NOT NULL, milliseconds bigint NOT NULL, writing bigint NOT NULL,
      blocks bigint NOT NULL, contents bigint NOT NULL)
    """,
    """
    CREATE TABLE IF NOT EXISTS keyway.blocks (
      writing bigint NOT NULL, number bigint NOT NULL, body bytea NOT NULL, PRIMARY KEY (writing, number))
    """,
    // Bytes, because PostgreSQL's `text` cannot contain a zero byte.
    """
    CREATE TABLE IF NOT EXISTS keyway.revocations (
      subject bytea PRIMARY KEY, milliseconds bigint NOT NULL, digest bigint NOT NULL)
    """,
    nodes,
    // Its row is locked by changes of snapshots, so that they do not interfere.
    "CREATE TABLE IF NOT EXISTS keyway.maintenance (one bigint PRIMARY KEY)",
    "INSERT INTO keyway.maintenance VALUES (1) ON CONFLICT DO NOTHING",
  ]

  /// The columns of a head, of a row `h`.
  static let headColumns = "h.layout, h.epoch, h.schema, h.base, h.base_digest, h.last, h.digest, h.pen, h.revoked"
  /// The number of these columns.
  static let headColumnCount = 9
}

/// Finds the journal of a database, or creates one.
struct PostgresOpening {
  let pool: PostgresPool
  /// The time limit of a call to the database.
  let patience: Duration

  /// The maximum number of attempts to create the tables while other nodes create them too.
  private static let attempts = 50

  /// Returns the head with the text of its schema. If the database has none, creates a journal with the given identity,
  /// and returns its head.
  func run(_ identity: () -> JournalIdentity?) throws(PostgresError) -> (PostgresHead, String) {
    var attempts = Self.attempts
    while true {
      do throws(PostgresError) {
        return try pool.withReading { connection throws(PostgresError) in
          if let found = try read(connection) { return found }
          guard let identity = identity() else { throw .refused(code: "", "it has no journal") }
          try make(identity, connection)
          guard let made = try read(connection) else { throw .unexpected("the head is missing") }
          return made
        }
      } catch {
        // Two nodes that create the tables at the same time collide.
        attempts -= 1
        guard error.isCollision, attempts > 0 else { throw error }
        usleep(.random(in: 1_000...50_000))
      }
    }
  }

  /// Reads the head with the text of its schema; nil if there is none.
  func read(_ connection: PostgresConnection) throws(PostgresError) -> (PostgresHead, String)? {
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

  private func make(_ identity: JournalIdentity, _ connection: PostgresConnection) throws(PostgresError) {
    for statement in PostgresLayout.statements { try connection.execute(statement, within: patience) }
    let schema = PostgresHead.digest(ofSchema: identity.schema)
    try connection.execute(
      "INSERT INTO keyway.schemas VALUES ($1, $2) ON CONFLICT DO NOTHING", [.bits(schema), .text(identity.schema)],
      within: patience)
    try connection.execute(
      "INSERT INTO keyway.head VALUES (1, $1, $2, $3, 0, $4, 0, $4, '', 0) ON CONFLICT DO NOTHING",
      [
        .integer(PostgresLayout.version), .text(identity.epoch), .bits(schema), .bits(JournalDigest.start.value),
      ], within: patience)
  }
}
