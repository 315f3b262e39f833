/// The tables that a journal is kept in, in the schema `keyway` of its database: one store in each.
///
/// Only what every database that speaks PostgreSQL's language has: no extension, no function of our own, no lock but
/// that of a row. `keyway.head` has one row, which every append changes where it is what was expected: so of two
/// appends at the same place one succeeds.
enum PostgresLayout {
  /// Moves on with every change of the tables that an earlier program would not understand.
  static let version: Int64 = 1

  /// Where the nodes are reached that use the journal, and when they said so last.
  static let nodes = "CREATE TABLE IF NOT EXISTS keyway.nodes (url text PRIMARY KEY, heard timestamptz NOT NULL)"

  /// Makes the tables where they are not there.
  static let statements = [
    "CREATE SCHEMA IF NOT EXISTS keyway",
    // The texts of schemas, by their digests: too long to be written anew with every change of the head.
    """
    CREATE TABLE IF NOT EXISTS keyway.schemas (digest bigint PRIMARY KEY, text text NOT NULL)
    """,
    // `pen`: the address of the node that appended last. `revoked`: how often the revocations were changed.
    """
    CREATE TABLE IF NOT EXISTS keyway.head (
      one bigint PRIMARY KEY CHECK (one = 1), layout bigint NOT NULL, epoch text NOT NULL, schema bigint NOT NULL,
      base bigint NOT NULL, base_digest bigint NOT NULL, last bigint NOT NULL, digest bigint NOT NULL,
      pen text NOT NULL, revoked bigint NOT NULL)
    """,
    // `batch`: a random number of the append, by which its node knows it again.
    """
    CREATE TABLE IF NOT EXISTS keyway.records (
      revision bigint PRIMARY KEY, milliseconds bigint NOT NULL, digest bigint NOT NULL, batch bigint NOT NULL,
      body bytea NOT NULL)
    """,
    // `writing`: the random number of the blocks, which are written before the snapshot is there. `contents`: the
    // digest of the chain of the blocks.
    """
    CREATE TABLE IF NOT EXISTS keyway.snapshots (
      revision bigint PRIMARY KEY, digest bigint NOT NULL, milliseconds bigint NOT NULL, writing bigint NOT NULL,
      blocks bigint NOT NULL, contents bigint NOT NULL)
    """,
    """
    CREATE TABLE IF NOT EXISTS keyway.blocks (
      writing bigint NOT NULL, number bigint NOT NULL, body bytea NOT NULL, PRIMARY KEY (writing, number))
    """,
    // Bytes, because a text of PostgreSQL has no zero in it.
    """
    CREATE TABLE IF NOT EXISTS keyway.revocations (
      subject bytea PRIMARY KEY, milliseconds bigint NOT NULL, digest bigint NOT NULL)
    """,
    nodes,
    // Its row is locked by what changes snapshots, so that they do not get in the way of one another.
    "CREATE TABLE IF NOT EXISTS keyway.maintenance (one bigint PRIMARY KEY)",
    "INSERT INTO keyway.maintenance VALUES (1) ON CONFLICT DO NOTHING",
  ]

  /// What a head is read from; `h` is the row.
  static let headColumns = "h.layout, h.epoch, h.schema, h.base, h.base_digest, h.last, h.digest, h.pen, h.revoked"
  /// How many columns that are.
  static let headColumnCount = 9
}
