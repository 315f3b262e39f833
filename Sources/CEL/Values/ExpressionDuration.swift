import Support

/// A span of time in nanoseconds, of either sign, about 292 years at most.
package struct ExpressionDuration: Sendable, Hashable, Comparable {
  /// The length.
  package let nanoseconds: Int64

  /// Creates the span of `nanoseconds`.
  package init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

  /// Returns true if the first is shorter, or more negative.
  package static func < (left: ExpressionDuration, right: ExpressionDuration) -> Bool {
    left.nanoseconds < right.nanoseconds
  }

  /// Returns the sum. Throws if it is out of range.
  func adding(_ other: ExpressionDuration) throws(EvaluationError) -> ExpressionDuration {
    let (sum, overflow) = nanoseconds.addingReportingOverflow(other.nanoseconds)
    guard !overflow else { throw .overflow("duration") }
    return ExpressionDuration(nanoseconds: sum)
  }

  /// Returns the difference. Throws if it is out of range.
  func subtracting(_ other: ExpressionDuration) throws(EvaluationError) -> ExpressionDuration {
    let (difference, overflow) = nanoseconds.subtractingReportingOverflow(other.nanoseconds)
    guard !overflow else { throw .overflow("duration") }
    return ExpressionDuration(nanoseconds: difference)
  }

  /// Returns the opposite. Throws if that is out of range.
  func negated() throws(EvaluationError) -> ExpressionDuration {
    try ExpressionDuration(nanoseconds: 0).subtracting(self)
  }

  // MARK: Parsing

  /// The length of one of each unit, in nanoseconds.
  private static let units: [String: Int128] = [
    "h": 3_600_000_000_000, "m": 60_000_000_000, "s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "µs": 1_000,
    "μs": 1_000, "ns": 1,
  ]

  /// Parses numbers with units, such as `1h45m47s`, `-1.5s` or `999ns`, and `0` (CEL language definition, Timestamps
  /// and Durations). Digits below a nanosecond are dropped. Nil if the text is invalid or out of range.
  init?(parsing text: String) {
    var rest = Substring(text)
    let isNegative = rest.hasPrefix("-")
    if isNegative || rest.hasPrefix("+") { rest.removeFirst() }
    if rest == "0" {
      self.init(nanoseconds: 0)
      return
    }
    guard !rest.isEmpty, text.utf8.count <= 64 else { return nil }
    var total: Int128 = 0
    while !rest.isEmpty {
      guard let part = ExpressionDuration.takePart(&rest) else { return nil }
      total += part
    }
    guard let nanoseconds = Int64(exactly: isNegative ? -total : total) else { return nil }
    self.init(nanoseconds: nanoseconds)
  }

  /// Removes one number with its unit from the front.
  private static func takePart(_ rest: inout Substring) -> Int128? {
    let whole = takeDigits(&rest)
    var fraction = ""
    if rest.hasPrefix(".") {
      rest.removeFirst()
      fraction = takeDigits(&rest)
    }
    guard !whole.isEmpty || !fraction.isEmpty, whole.utf8.count <= 20 else { return nil }
    let name = String(rest.prefix { !isDigit($0) && $0 != "." })
    guard let unit = units[name] else { return nil }
    rest.removeFirst(name.count)
    var nanoseconds = (Int128(whole) ?? 0) * unit
    var place = unit
    for digit in fraction.utf8 where place > 0 {
      place /= 10
      nanoseconds += Int128(digit - 0x30) * place
    }
    return nanoseconds
  }

  /// True for an ASCII digit alone; a digit with a combining character is between "0" and "9", too.
  private static func isDigit(_ character: Character) -> Bool { character.isASCII && character.isWholeNumber }

  private static func takeDigits(_ rest: inout Substring) -> String {
    let digits = rest.prefix(while: isDigit)
    rest.removeFirst(digits.count)
    return String(digits)
  }
}

extension ExpressionDuration: CustomStringConvertible {
  /// The seconds with as many decimals as needed, such as `6347s` and `-0.5s`.
  package var description: String {
    let (seconds, rest) = nanoseconds.magnitude.quotientAndRemainder(dividingBy: 1_000_000_000)
    return "\(nanoseconds < 0 ? "-" : "")\(seconds)\(RFC3339.fraction(nanoseconds: Int(rest)))s"
  }
}
