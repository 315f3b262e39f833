import CPostgres

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

/// A value that a statement is sent with, in PostgreSQL's binary form.
enum PostgresParameter: Sendable {
  case integer(Int64)
  case text(String)
  case bytes([UInt8])
  case integers([Int64])
  case byteStrings([[UInt8]])

  /// Its type, by the number that PostgreSQL gives it (`pg_type.dat`).
  var type: UInt32 {
    switch self {
    case .integer: 20
    case .text: 25
    case .bytes: 17
    case .integers: 1016
    case .byteStrings: 1001
    }
  }

  /// A number that has all 64 bits.
  static func bits(_ value: UInt64) -> PostgresParameter { .integer(Int64(bitPattern: value)) }

  /// Adds its bytes.
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

  /// The head of an array: its dimensions, whether it has nulls, the type of its members; of its one dimension the
  /// length and the first index.
  private static func appendHead(count: Int, of type: Int32, to bytes: inout [UInt8]) {
    for number in [1, 0, type, Int32(count), 1] { append(number, to: &bytes) }
  }

  private static func append(_ number: some FixedWidthInteger, to bytes: inout [UInt8]) {
    withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
  }
}

/// The rows that a statement gave, in PostgreSQL's binary form.
final class PostgresResult {
  private let handle: OpaquePointer

  /// Takes over a result of libpq.
  init(_ handle: OpaquePointer) { self.handle = handle }

  deinit { PQclear(handle) }

  /// How many rows there are.
  var count: Int { Int(PQntuples(handle)) }

  /// How many rows were inserted, changed or removed.
  var changedCount: Int { Int(String(cString: PQcmdTuples(handle))) ?? 0 }

  /// Whether there is no value.
  func isNull(_ row: Int, _ column: Int) -> Bool { PQgetisnull(handle, Int32(row), Int32(column)) == 1 }

  /// A `bigint`. Throws where it is none.
  func integer(_ row: Int, _ column: Int) throws(PostgresError) -> Int64 {
    let length = Int(PQgetlength(handle, Int32(row), Int32(column)))
    guard length == 8, !isNull(row, column), let value = PQgetvalue(handle, Int32(row), Int32(column)) else {
      throw .unexpected("column \(column) is no bigint")
    }
    return Int64(bigEndian: UnsafeRawPointer(value).loadUnaligned(as: Int64.self))
  }

  /// A `bigint` as a number that has all 64 bits. Throws where it is none.
  func bits(_ row: Int, _ column: Int) throws(PostgresError) -> UInt64 {
    UInt64(bitPattern: try integer(row, column))
  }

  /// A `bytea`.
  func bytes(_ row: Int, _ column: Int) -> [UInt8] {
    guard let value = PQgetvalue(handle, Int32(row), Int32(column)) else { return [] }
    return Array(UnsafeRawBufferPointer(start: value, count: Int(PQgetlength(handle, Int32(row), Int32(column)))))
  }

  /// A `text`.
  func text(_ row: Int, _ column: Int) -> String { String(decoding: bytes(row, column), as: UTF8.self) }
}

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
