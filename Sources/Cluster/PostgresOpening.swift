import Glibc
import Store

/// Finds the journal of a database, or makes one.
struct PostgresOpening {
  let pool: PostgresPool
  /// How long a call waits for the database.
  let patience: Duration

  /// How often the tables are made where other nodes are making them, too.
  private static let attempts = 50

  /// The head, with the text of its schema; where there is none, that of one that is what `identity` says.
  func run(_ identity: () -> JournalIdentity?) throws(PostgresError) -> (PostgresHead, String) {
    var attempts = Self.attempts
    while true {
      do throws(PostgresError) {
        return try pool.withReading { connection throws(PostgresError) in
          if let found = try read(connection) { return found }
          guard let identity = identity() else { throw .refused(code: "", "there is no journal in it") }
          try make(identity, connection)
          guard let made = try read(connection) else { throw .unexpected("the head is missing") }
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
