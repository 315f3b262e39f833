/// Writes a text with clauses.
struct FormatWriter {
  /// The most decimals that a clause may ask for.
  private static let precisionLimit = 100

  private(set) var result = ""
  private let arguments: ExpressionList
  private var used = 0

  init(_ arguments: ExpressionList) { self.arguments = arguments }

  /// Writes `text`. Throws when a clause is none, or when it has no argument or one that it does not take.
  mutating func write(_ text: String, _ budget: inout EvaluationBudget) throws(EvaluationError) {
    try budget.spend(bytes: text.utf8.count)
    var rest = text.unicodeScalars[...]
    while let percent = rest.firstIndex(of: "%") {
      result.unicodeScalars.append(contentsOf: rest[..<percent])
      rest = rest[rest.index(after: percent)...]
      if rest.first == "%" {
        rest.removeFirst()
        result += "%"
      } else {
        let precision = try FormatWriter.precision(&rest)
        guard let clause = rest.popFirst() else { throw .invalid("format(): the text ends within a clause") }
        let written = try written(clause, precision, try nextArgument(), &budget)
        try budget.spend(bytes: written.utf8.count)
        result += written
      }
    }
    result.unicodeScalars.append(contentsOf: rest)
  }

  private mutating func nextArgument() throws(EvaluationError) -> ExpressionValue {
    guard used < arguments.count else { throw .invalid("format(): there is no argument \(used) in the list") }
    used += 1
    return try arguments.element(at: used - 1)
  }

  /// `.3`, or nil.
  private static func precision(
    _ rest: inout Substring.UnicodeScalarView
  ) throws(EvaluationError) -> Int? {
    guard rest.first == "." else { return nil }
    rest.removeFirst()
    let digits = rest.prefix { Lexer.isDigit($0) }
    rest = rest.dropFirst(digits.count)
    guard let precision = Int(String(Substring(digits))), precision <= precisionLimit else {
      throw .invalid("format(): a precision is a number up to \(precisionLimit)")
    }
    return precision
  }

  private func written(
    _ clause: Unicode.Scalar, _ precision: Int?, _ value: ExpressionValue, _ budget: inout EvaluationBudget
  ) throws(EvaluationError) -> String {
    let text: String?
    switch clause {
    case "s": return try FormatWriter.plain(value, &budget, depth: 0)
    case "d": text = FormatWriter.decimal(value)
    case "f", "e": text = FormatWriter.fraction(value, precision ?? 6, isScientific: clause == "e")
    case "b": text = FormatWriter.integer(value, radix: 2)
    case "o": text = FormatWriter.integer(value, radix: 8)
    case "x", "X": text = try FormatWriter.hexadecimal(value, isUppercase: clause == "X", &budget)
    default: throw .invalid("format(): there is no clause '%\(clause)'")
    }
    guard let text else { throw .invalid("format(): %\(clause) does not take a \(value.typeName)") }
    return text
  }
}
