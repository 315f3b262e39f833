/// Why a text is not an expression that can be evaluated: it does not parse, or does not fit the environment's types.
package struct ExpressionError: Error, Sendable, Equatable, CustomStringConvertible {
  /// Where the fault begins, in Unicode scalars from the start of the text, from 0.
  package let offset: Int
  /// The line of the fault, from 1.
  package let line: Int
  /// The column of the fault within its line, from 1, in Unicode scalars.
  package let column: Int
  /// What is wrong, without the position.
  package let message: String
  /// Faults that were found after this one, in order; at most `furtherLimit`.
  package internal(set) var further: [ExpressionError] = []

  /// How many further faults are kept.
  static let furtherLimit = 15

  /// The fault `message` at the scalar `offset` of `text`.
  package init(_ message: String, at offset: Int, in text: String) {
    var line = 1
    var column = 1
    for scalar in text.unicodeScalars.prefix(offset) {
      if scalar == "\n" {
        line += 1
        column = 1
      } else {
        column += 1
      }
    }
    (self.offset, self.line, self.column, self.message) = (offset, line, column, message)
  }

  /// `line:column: message`.
  package var description: String { "\(line):\(column): \(message)" }
}
