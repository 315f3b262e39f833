import Support

/// An instant of the years 1 to 9999, to the nanosecond.
package struct ExpressionTimestamp: Sendable, Hashable, Comparable {
  /// Whole seconds since 1970-01-01T00:00:00Z, rounded down.
  package let seconds: Int64
  /// The rest, from 0 to 999,999,999.
  package let nanoseconds: Int32

  /// The range of seconds: 0001-01-01T00:00:00Z to 9999-12-31T23:59:59Z.
  private static let range: ClosedRange<Int64> = -62_135_596_800...253_402_300_799

  /// Creates the instant; nil if it is out of range or `nanoseconds` is.
  package init?(seconds: Int64, nanoseconds: Int32 = 0) {
    guard ExpressionTimestamp.range.contains(seconds), (0..<1_000_000_000).contains(nanoseconds) else { return nil }
    (self.seconds, self.nanoseconds) = (seconds, nanoseconds)
  }

  /// Parses RFC 3339, such as `2009-02-13T23:31:30.5+01:00`, with `T` and `Z` in upper case, at most nine decimals and
  /// no leap second. Nil if the text is invalid, if there is no such day or time, or if the instant is out of range.
  package init?(parsing text: String) {
    let parts = text.utf8.split(separator: UInt8(ascii: "."))
    let decimals = parts.count > 1 ? parts[1].prefix { (0x30...0x39).contains($0) }.count : 0
    let isPlain = !text.utf8.contains { $0 == UInt8(ascii: "t") || $0 == UInt8(ascii: "z") }
    guard text.utf8.count > 10, isPlain, decimals <= 9, !text.utf8.dropFirst(17).starts(with: "60".utf8),
      let instant = RFC3339Instant(text)
    else { return nil }
    self.init(seconds: instant.seconds, nanoseconds: instant.nanoseconds)
  }

  /// Returns true if the first is earlier.
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

  /// Returns the instant later by `duration`. Throws if that is out of range.
  func adding(_ duration: ExpressionDuration) throws(EvaluationError) -> ExpressionTimestamp {
    try ExpressionTimestamp(total: total + Int128(duration.nanoseconds))
  }

  /// Returns the instant earlier by `duration`. Throws if that is out of range.
  func subtracting(_ duration: ExpressionDuration) throws(EvaluationError) -> ExpressionTimestamp {
    try ExpressionTimestamp(total: total - Int128(duration.nanoseconds))
  }

  /// Returns the time since `other`. Throws if that is longer than a duration can be.
  func since(_ other: ExpressionTimestamp) throws(EvaluationError) -> ExpressionDuration {
    guard let span = Int64(exactly: total - other.total) else { throw .overflow("duration") }
    return ExpressionDuration(nanoseconds: span)
  }
}

extension ExpressionTimestamp: CustomStringConvertible {
  /// The instant by RFC 3339 in UTC, with as many decimals as needed.
  package var description: String {
    RFC3339.dateTime(
      CivilTime(secondsSinceEpoch: Int(seconds)), fraction: RFC3339.fraction(nanoseconds: Int(nanoseconds)))
  }
}
