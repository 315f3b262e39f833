/// The fields that every response has, streams included, whatever it answers.
enum CommonFields {
  /// Their names and values: a browser shall not guess what the bytes are, and no page of another origin may embed them
  /// (Fetch standard, `X-Content-Type-Options` and `Cross-Origin-Resource-Policy`).
  static let all: [(name: String, value: String)] = [
    ("X-Content-Type-Options", "nosniff"), ("Cross-Origin-Resource-Policy", "same-origin"),
  ]

  /// The same as lines behind others, with what stands for the line breaks.
  static let lines: [UInt8] = all.flatMap {
    [FieldLines.mark, FieldLines.mark] + Array("\($0.name): \($0.value)".utf8)
  }

  /// The most bytes that they and the request's id add to the head of a response.
  static let byteCount =
    all.reduce(0) { $0 + lineByteCount($1.name, valueByteCount: $1.value.utf8.count) }
    + lineByteCount(RequestID.fieldName, valueByteCount: 128)

  private static func lineByteCount(_ name: String, valueByteCount: Int) -> Int { name.utf8.count + valueByteCount + 4 }
}
