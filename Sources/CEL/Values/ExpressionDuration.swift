import Support

/// A span of time in nanoseconds, of either sign, about 292 years at most.
package struct ExpressionDuration: Sendable, Hashable, Comparable {
  /// The length.
  package let nanoseconds: Int64

  static let nanosecondsPerSecond: Int64 = 1_000_000_000

  /// The span of `nanoseconds`.
  package init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

  /// Whether the first is shorter, or more negative.
  package static func < (left: ExpressionDuration, right: ExpressionDuration) -> Bool {
    left.nanoseconds < right.nanoseconds
  }

  /// The sum. Throws when it is out of range.
  func adding(_ other: ExpressionDuration) throws(EvaluationError) -> ExpressionDuration {
    let (sum, overflow) = nanoseconds.addingReportingOverflow(other.nanoseconds)
    guard !overflow else { throw .overflow("duration") }
    return ExpressionDuration(nanoseconds: sum)
  }

  /// The difference. Throws when it is out of range.
  func subtracting(_ other: ExpressionDuration) throws(EvaluationError) -> ExpressionDuration {
    let (difference, overflow) = nanoseconds.subtractingReportingOverflow(other.nanoseconds)
    guard !overflow else { throw .overflow("duration") }
    return ExpressionDuration(nanoseconds: difference)
  }

  /// Its opposite. Throws when that is out of range.
  func negated() throws(EvaluationError) -> ExpressionDuration {
    try ExpressionDuration(nanoseconds: 0).subtracting(self)
  }
}

extension ExpressionDuration: CustomStringConvertible {
  /// Seconds with as many decimals as it takes, such as `6347s` and `-0.5s`.
  package var description: String {
    let unit = UInt64(ExpressionDuration.nanosecondsPerSecond)
    let (seconds, rest) = nanoseconds.magnitude.quotientAndRemainder(dividingBy: unit)
    return "\(nanoseconds < 0 ? "-" : "")\(seconds)\(RFC3339.fraction(nanoseconds: Int(rest)))s"
  }
}
