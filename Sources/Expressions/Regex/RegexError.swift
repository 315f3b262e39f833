/// Why a pattern is no regular expression.
struct RegexError: Error, Equatable {
  let message: String

  init(_ message: String, in pattern: String, at offset: Int) {
    self.message = "pattern '\(pattern.prefix(60))', character \(offset + 1): \(message)"
  }
}
