/// An instant of the years 1 to 9999, to the nanosecond.
package struct ExpressionTimestamp: Sendable, Hashable, Comparable {
  /// Whole seconds since 1970-01-01T00:00:00Z, rounded down.
  package let seconds: Int64
  /// The rest, from 0 to 999,999,999.
  package let nanoseconds: Int32

  /// The seconds that there are: 0001-01-01T00:00:00Z to 9999-12-31T23:59:59Z.
  static let range: ClosedRange<Int64> = -62_135_596_800...253_402_300_799

  /// The instant, or nil when it is out of range or `nanoseconds` is.
  package init?(seconds: Int64, nanoseconds: Int32 = 0) {
    guard ExpressionTimestamp.range.contains(seconds), (0..<1_000_000_000).contains(nanoseconds) else { return nil }
    (self.seconds, self.nanoseconds) = (seconds, nanoseconds)
  }

  /// Whether the first is earlier.
  package static func < (left: ExpressionTimestamp, right: ExpressionTimestamp) -> Bool {
    (left.seconds, left.nanoseconds) < (right.seconds, right.nanoseconds)
  }

  /// Nanoseconds since 1970.
  private var total: Int128 { Int128(seconds) * 1_000_000_000 + Int128(nanoseconds) }

  private init(total: Int128) throws(EvaluationError) {
    let unit: Int128 = 1_000_000_000
    var (seconds, rest) = total.quotientAndRemainder(dividingBy: unit)
    if rest < 0 {
      seconds -= 1
      rest += unit
    }
    guard let seconds = Int64(exactly: seconds), let value = Self(seconds: seconds, nanoseconds: Int32(rest)) else {
      throw .overflow("timestamp")
    }
    self = value
  }

  /// Later by `duration`. Throws when that is out of range.
  func adding(_ duration: ExpressionDuration) throws(EvaluationError) -> ExpressionTimestamp {
    try ExpressionTimestamp(total: total + Int128(duration.nanoseconds))
  }

  /// Earlier by `duration`. Throws when that is out of range.
  func subtracting(_ duration: ExpressionDuration) throws(EvaluationError) -> ExpressionTimestamp {
    try ExpressionTimestamp(total: total - Int128(duration.nanoseconds))
  }

  /// How much later it is than `other`. Throws when that is more than a duration can be.
  func since(_ other: ExpressionTimestamp) throws(EvaluationError) -> ExpressionDuration {
    guard let span = Int64(exactly: total - other.total) else { throw .overflow("duration") }
    return ExpressionDuration(nanoseconds: span)
  }
}
