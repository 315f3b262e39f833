import CPostgres

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
