/// A condition on the place between two characters.
enum RegexAssertion: Sendable {
  case startOfText
  case endOfText
  case startOfLine
  case endOfLine
  case wordBoundary(isUnicode: Bool)
  case noWordBoundary(isUnicode: Bool)

  /// Whether it holds between `previous` and `next`, which are nil at the ends of the text.
  func holds(_ previous: Unicode.Scalar?, _ next: Unicode.Scalar?) -> Bool {
    switch self {
    case .startOfText: previous == nil
    case .endOfText: next == nil
    case .startOfLine: previous == nil || previous == "\n"
    case .endOfLine: next == nil || next == "\n"
    case .wordBoundary(let isUnicode):
      RegexAssertion.isWord(previous, isUnicode) != RegexAssertion.isWord(next, isUnicode)
    case .noWordBoundary(let isUnicode):
      RegexAssertion.isWord(previous, isUnicode) == RegexAssertion.isWord(next, isUnicode)
    }
  }

  private static func isWord(_ scalar: Unicode.Scalar?, _ isUnicode: Bool) -> Bool {
    guard let scalar else { return false }
    return isUnicode ? ScalarSet.isWord(scalar) : Lexer.isLetter(scalar) || Lexer.isDigit(scalar)
  }
}
