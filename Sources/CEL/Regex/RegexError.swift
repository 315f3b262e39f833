/// Why a pattern is no regular expression.
package struct RegexError: Error, Equatable {
  /// What is wrong, with the pattern and the place.
  package let message: String

  init(_ message: String, in pattern: String, at offset: Int) {
    self.message = "pattern '\(pattern.prefix(60))', character \(offset + 1): \(message)"
  }
}
