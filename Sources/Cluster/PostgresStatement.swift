/// A statement that is carried out again and again, which a connection has the database prepare.
struct PostgresStatement: Hashable, Sendable {
  /// What it is called in a session of the database.
  let name: String
  /// As the database reads it; `$1`, `$2` … are its parameters.
  let text: String

  /// What stands in the bytes by which it is carried out, and not in those by which it is prepared: the name of its
  /// portal, which is empty, and its own (PostgreSQL, Message Formats, Bind).
  var mark: String { "\u{0}\(name)\u{0}" }

  static func == (one: PostgresStatement, other: PostgresStatement) -> Bool { one.name == other.name }

  func hash(into hasher: inout Hasher) { hasher.combine(name) }
}
