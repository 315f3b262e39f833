import CPostgres

/// A statement that is executed again and again, and so is prepared once for each connection.
struct PostgresStatement: Hashable, Sendable {
  /// The name of the prepared statement in a session of the database.
  let name: String
  /// The text of the statement, with the parameters `$1`, `$2` ….
  let text: String

  /// The bytes that occur in the message that executes the statement, and not in the one that prepares it: the name of
  /// its portal, which is empty, and its own name (PostgreSQL, Message Formats, Bind).
  var mark: String { "\u{0}\(name)\u{0}" }

  static func == (one: PostgresStatement, other: PostgresStatement) -> Bool { one.name == other.name }

  func hash(into hasher: inout Hasher) { hasher.combine(name) }
}

/// A value that a statement is sent with, in PostgreSQL's binary form.
enum PostgresParameter: Sendable {
  case integer(Int64)
  case text(String)
  case bytes([UInt8])
  case integers([Int64])
  case byteStrings([[UInt8]])

  /// The number of its type in PostgreSQL (`pg_type.dat`).
  var type: UInt32 {
    switch self {
    case .integer: 20
    case .text: 25
    case .bytes: 17
    case .integers: 1016
    case .byteStrings: 1001
    }
  }

  /// Creates an integer from the bits of an unsigned number.
  static func bits(_ value: UInt64) -> PostgresParameter { .integer(Int64(bitPattern: value)) }

  /// Appends the encoded value.
  func append(to bytes: inout [UInt8]) {
    switch self {
    case .integer(let value): Self.append(value, to: &bytes)
    case .text(let text): bytes.append(contentsOf: text.utf8)
    case .bytes(let some): bytes.append(contentsOf: some)
    case .integers(let values):
      Self.appendHead(count: values.count, of: 20, to: &bytes)
      for value in values {
        Self.append(Int32(8), to: &bytes)
        Self.append(value, to: &bytes)
      }
    case .byteStrings(let strings):
      Self.appendHead(count: strings.count, of: 17, to: &bytes)
      for string in strings {
        Self.append(Int32(string.count), to: &bytes)
        bytes.append(contentsOf: string)
      }
    }
  }

  /// Appends the head of an array: the number of its dimensions, whether it has nulls, the type of its elements; the
  /// length and the first index of its one dimension.
  private static func appendHead(count: Int, of type: Int32, to bytes: inout [UInt8]) {
    for number in [1, 0, type, Int32(count), 1] { append(number, to: &bytes) }
  }

  private static func append(_ number: some FixedWidthInteger, to bytes: inout [UInt8]) {
    withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
  }
}

/// The result of a statement, in PostgreSQL's binary format.
final class PostgresResult {
  private let handle: OpaquePointer

  /// Creates the owner of a result of libpq.
  init(_ handle: OpaquePointer) { self.handle = handle }

  deinit { PQclear(handle) }

  /// The number of rows.
  var count: Int { Int(PQntuples(handle)) }

  /// The number of rows that were inserted, changed or deleted.
  var changedCount: Int { Int(String(cString: PQcmdTuples(handle))) ?? 0 }

  /// Returns true if the value is null.
  func isNull(_ row: Int, _ column: Int) -> Bool { PQgetisnull(handle, Int32(row), Int32(column)) == 1 }

  /// Returns a `bigint`. Throws if the value is not one.
  func integer(_ row: Int, _ column: Int) throws(PostgresError) -> Int64 {
    let length = Int(PQgetlength(handle, Int32(row), Int32(column)))
    guard length == 8, !isNull(row, column), let value = PQgetvalue(handle, Int32(row), Int32(column)) else {
      throw .unexpected("column \(column) is not a bigint")
    }
    return Int64(bigEndian: UnsafeRawPointer(value).loadUnaligned(as: Int64.self))
  }

  /// Returns the bits of a `bigint`. Throws if the value is not one.
  func bits(_ row: Int, _ column: Int) throws(PostgresError) -> UInt64 {
    UInt64(bitPattern: try integer(row, column))
  }

  /// Returns a `bytea`; empty if the value is null.
  func bytes(_ row: Int, _ column: Int) -> [UInt8] {
    guard let value = PQgetvalue(handle, Int32(row), Int32(column)) else { return [] }
    return Array(UnsafeRawBufferPointer(start: value, count: Int(PQgetlength(handle, Int32(row), Int32(column)))))
  }

  /// Returns a `text`; empty if the value is null.
  func text(_ row: Int, _ column: Int) -> String { String(decoding: bytes(row, column), as: UTF8.self) }
}

/// The reason why a request to a database was not carried out, or may not have been.
enum PostgresError: Error, Sendable, CustomStringConvertible {
  /// The database refused, with a code (SQLSTATE) and a message. Nothing was done.
  case refused(code: String, String)
  /// There is no connection, so nothing was sent.
  case unreachable(String)
  /// The connection was lost, or the time was up, before the database reported the outcome: it may be done.
  case lost(String)
  /// The database returned something that does not fit the request.
  case unexpected(String)

  var description: String {
    switch self {
    case .refused(_, let reason): "the database refused: \(reason)"
    case .unreachable(let reason): "the database cannot be reached: \(reason)"
    case .lost(let reason): "the database did not answer: \(reason)"
    case .unexpected(let reason): "the database gave an unexpected answer: \(reason)"
    }
  }

  /// The codes after which the outcome is not known: a broken connection, a database that shuts down during the
  /// statement, and `statement_completion_unknown`.
  private static let unknownOutcomes = ["08", "57P", "40003"]

  /// The codes for duplicates: a unique key, a schema, a table, a type.
  private static let duplicates = ["23505", "42P06", "42P07", "42710"]

  /// Returns the error for a code of the database.
  static func said(_ code: String, _ reason: String) -> PostgresError {
    unknownOutcomes.contains { code.hasPrefix($0) } ? .lost(reason) : .refused(code: code, reason)
  }

  /// True if a table or its schema is missing.
  var isMissingTable: Bool {
    if case .refused(let code, _) = self { code == "42P01" || code == "3F000" } else { false }
  }

  /// True if a prepared statement is unknown, or exists already: the session is another one than before.
  var isAboutPreparing: Bool {
    if case .refused(let code, _) = self { code == "26000" || code == "42P05" } else { false }
  }

  /// True if the statement collided with others, so that it may succeed at once if repeated (class 40), or two sessions
  /// created the same thing at the same time.
  var isCollision: Bool {
    guard case .refused(let code, _) = self else { return false }
    return code.hasPrefix("40") || Self.duplicates.contains(code)
  }
}
