/// The dates of RFC 3339 §5.6: `full-date` (`2010-03-01`) and `date-time` (`2010-03-01T09:30:00Z`, with a fraction or
/// an offset where wanted).
package enum RFC3339 {
  /// Whether `text` is a `full-date` or a `date-time` that exists in the calendar. O(n).
  package static func isDate(_ text: String) -> Bool { RFC3339Instant(text) != nil }

  /// The seconds that an offset such as `+11:00` or `-02:30` is ahead of UTC; nil where `text` is none.
  package static func offset(_ text: String) -> Int? { RFC3339Instant.offset(Array(text.utf8)[...]) }

  /// The `date-time` of an instant in UTC. `fraction` goes behind the seconds, with its point.
  package static func dateTime(_ time: CivilTime, fraction: String = "") -> String {
    let clock = [time.hour, time.minute, time.second].map { $0.padded(to: 2) }.joined(separator: ":")
    return "\(time.date)T\(clock)\(fraction)Z"
  }

  /// The `date-time` in UTC, to the millisecond, of so many milliseconds since 1970-01-01T00:00:00Z. Times before the
  /// year 0 and after 9999, which have no such text, are given as the first and the last that has one.
  package static func dateTime(milliseconds: Int64) -> String {
    let time = Int(min(max(milliseconds, -62_167_219_200_000), 253_402_300_799_999))
    let millisecond = (time % 1_000 + 1_000) % 1_000
    let seconds = CivilTime(secondsSinceEpoch: (time - millisecond) / 1_000)
    return dateTime(seconds, fraction: "." + millisecond.padded(to: 3))
  }

  /// A fraction of a second with its point and without zeros at the end, empty when it is 0.
  package static func fraction(nanoseconds: Int) -> String {
    guard nanoseconds != 0 else { return "" }
    var digits = nanoseconds.padded(to: 9)
    while digits.hasSuffix("0") { digits.removeLast() }
    return "." + digits
  }
}
