/// A condition on the place between two characters.
enum RegexAssertion: Sendable {
  case startOfText
  case endOfText
  case startOfLine
  case endOfLine
  case wordBoundary
  case noWordBoundary

  /// Whether it holds between `previous` and `next`, which are nil at the ends of the text.
  func holds(_ previous: Unicode.Scalar?, _ next: Unicode.Scalar?) -> Bool {
    switch self {
    case .startOfText: previous == nil
    case .endOfText: next == nil
    case .startOfLine: previous == nil || previous == "\n"
    case .endOfLine: next == nil || next == "\n"
    case .wordBoundary: RegexAssertion.isWord(previous) != RegexAssertion.isWord(next)
    case .noWordBoundary: RegexAssertion.isWord(previous) == RegexAssertion.isWord(next)
    }
  }

  private static func isWord(_ scalar: Unicode.Scalar?) -> Bool {
    guard let scalar else { return false }
    return Lexer.isLetter(scalar) || Lexer.isDigit(scalar)
  }
}
