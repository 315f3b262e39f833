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
