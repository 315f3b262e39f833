/// Why something asked of a database was not done, or may not have been.
enum PostgresError: Error, Sendable, CustomStringConvertible {
  /// The database said no: its code (SQLSTATE) and words. Nothing was done.
  case refused(code: String, String)
  /// There is no connection: nothing was sent.
  case unreachable(String)
  /// The connection was lost, or the time was over, before the database said what became of it: it may be done.
  case lost(String)
  /// The database gave something that it cannot have been asked for.
  case unexpected(String)

  var description: String {
    switch self {
    case .refused(_, let reason): "the database refused: \(reason)"
    case .unreachable(let reason): "the database cannot be reached: \(reason)"
    case .lost(let reason): "the database did not answer: \(reason)"
    case .unexpected(let reason): "the database answered otherwise than it was asked: \(reason)"
    }
  }

  /// Codes after which it is not known what was done: a broken connection, a database that ends while it works, and
  /// `statement_completion_unknown`.
  private static let unknownOutcomes = ["08", "57P", "40003"]

  /// Codes of what is there already: a unique key, a schema, a table, a type.
  private static let duplicates = ["23505", "42P06", "42P07", "42710"]

  /// What the database said, by its code.
  static func said(_ code: String, _ reason: String) -> PostgresError {
    unknownOutcomes.contains { code.hasPrefix($0) } ? .lost(reason) : .refused(code: code, reason)
  }

  /// Whether a table or its schema is missing.
  var isMissingTable: Bool {
    if case .refused(let code, _) = self { code == "42P01" || code == "3F000" } else { false }
  }

  /// Whether a statement that was prepared is not known, or is there already: the session is another one than it was.
  var isAboutPreparing: Bool {
    if case .refused(let code, _) = self { code == "26000" || code == "42P05" } else { false }
  }

  /// Whether others got in the way, so that the same may succeed at once (class 40), or something was made by two at
  /// the same time.
  var isCollision: Bool {
    guard case .refused(let code, _) = self else { return false }
    return code.hasPrefix("40") || Self.duplicates.contains(code)
  }
}
