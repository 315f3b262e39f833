/// A moment that a date of RFC 3339 names, to compare dates that are written with different offsets.
package struct RFC3339Instant: Hashable, Sendable, Comparable {
  /// Whole seconds since 1970-01-01T00:00:00Z without leap seconds, rounded down.
  package let seconds: Int64
  /// What is beyond the whole seconds, from 0 to 999,999,999.
  package let nanoseconds: Int32

  /// The moment of a `date-time`, or of the midnight UTC with which a `full-date` begins; nil where `text` is neither.
  ///
  /// A fraction counts to nine digits, more are cut off. The second 60 is the moment of the next minute's first second,
  /// as in POSIX time. O(n) in the length of the text.
  package init?(_ text: String) {
    guard RFC3339.isDate(text) else { return nil }
    let bytes = Array(text.utf8)
    let days = Self.days(year: Self.number(bytes[0..<4]), Self.number(bytes[5..<7]), Self.number(bytes[8..<10]))
    guard bytes.count > 10 else {
      seconds = days * 86_400
      nanoseconds = 0
      return
    }
    let clock = Self.number(bytes[11..<13]) * 3600 + Self.number(bytes[14..<16]) * 60 + Self.number(bytes[17..<19])
    let hasFraction = bytes[19] == UInt8(ascii: ".")
    let fraction = hasFraction ? bytes[20...].prefix(while: \.isASCIIDigit) : bytes[19..<19]
    let offset = Self.offset(bytes[fraction.endIndex...])
    seconds = days * 86_400 + clock - offset
    nanoseconds = Self.nanoseconds(fraction)
  }

  /// By time.
  package static func < (left: RFC3339Instant, right: RFC3339Instant) -> Bool {
    (left.seconds, left.nanoseconds) < (right.seconds, right.nanoseconds)
  }

  private static func number(_ digits: ArraySlice<UInt8>) -> Int64 {
    digits.reduce(0) { $0 * 10 + Int64($1 - UInt8(ascii: "0")) }
  }

  private static func nanoseconds(_ fraction: ArraySlice<UInt8>) -> Int32 {
    let digits = fraction.prefix(9)
    return Int32((digits.count..<9).reduce(number(digits)) { value, _ in value * 10 })
  }

  /// The seconds that an offset (`Z`, `+01:30`) is ahead of UTC.
  private static func offset(_ bytes: ArraySlice<UInt8>) -> Int64 {
    guard bytes.count == 6, let sign = bytes.first else { return 0 }
    let start = bytes.startIndex
    let ahead = number(bytes[start + 1..<start + 3]) * 3600 + number(bytes[start + 4..<start + 6]) * 60
    return sign == UInt8(ascii: "-") ? -ahead : ahead
  }

  /// The days from 1970-01-01 to a date of the Gregorian calendar.
  private static func days(year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
    // Years begin in March here, so that the leap day is the last of its year. The year 0000 begins in March of -1.
    let marchYear = (month < 3 ? year - 1 : year) + 400
    let monthsSinceMarch = (month + 9) % 12
    let dayOfYear = (153 * monthsSinceMarch + 2) / 5 + day - 1
    let daysBefore = marchYear * 365 + marchYear / 4 - marchYear / 100 + marchYear / 400
    // 719,468 days are from 0000-03-01 to 1970-01-01, and 146,097 in 400 years.
    return daysBefore + dayOfYear - 719_468 - 146_097
  }
}
