/// The dates of RFC 3339 §5.6: `full-date` (`2010-03-01`) and `date-time` (`2010-03-01T09:30:00Z`, optionally with a
/// fraction or an offset).
package enum RFC3339 {
  /// Returns true if `text` is a `full-date` or a `date-time` that exists in the calendar. O(n).
  package static func isDate(_ text: String) -> Bool { RFC3339Instant(text) != nil }

  /// Returns the seconds by which an offset such as `+11:00` or `-02:30` is ahead of UTC; nil if `text` is not an
  /// offset.
  package static func offset(_ text: String) -> Int? { RFC3339Instant.offset(Array(text.utf8)[...]) }

  /// Returns the `date-time` of an instant in UTC. `fraction` follows the seconds, and includes its point.
  package static func dateTime(_ time: CivilTime, fraction: String = "") -> String {
    let clock = [time.hour, time.minute, time.second].map { $0.padded(to: 2) }.joined(separator: ":")
    return "\(time.date)T\(clock)\(fraction)Z"
  }

  /// Returns the `date-time` in UTC, to the millisecond, of a number of milliseconds since 1970-01-01T00:00:00Z. Times
  /// before the year 0 and after 9999, which have no such text, become the first and the last that has one.
  package static func dateTime(milliseconds: Int64) -> String {
    let time = Int(min(max(milliseconds, -62_167_219_200_000), 253_402_300_799_999))
    let millisecond = (time % 1_000 + 1_000) % 1_000
    let seconds = CivilTime(secondsSinceEpoch: (time - millisecond) / 1_000)
    return dateTime(seconds, fraction: "." + millisecond.padded(to: 3))
  }

  /// Returns a fraction of a second with its point and without trailing zeros; empty for 0.
  package static func fraction(nanoseconds: Int) -> String {
    guard nanoseconds != 0 else { return "" }
    var digits = nanoseconds.padded(to: 9)
    while digits.hasSuffix("0") { digits.removeLast() }
    return "." + digits
  }
}

/// An instant that a date of RFC 3339 names, to compare dates that are written with different offsets.
package struct RFC3339Instant: Hashable, Sendable, Comparable {
  /// Whole seconds since 1970-01-01T00:00:00Z without leap seconds, rounded down.
  package let seconds: Int64
  /// The nanoseconds beyond the whole seconds, from 0 to 999,999,999.
  package let nanoseconds: Int32

  /// Creates the instant of a `date-time`, or of the midnight UTC at the beginning of a `full-date`; nil if `text` is
  /// neither, or names a day or a time that does not exist.
  ///
  /// A fraction counts to nine digits; more are cut off. The second 60, which §5.7 allows at the end of a month in UTC,
  /// is the instant of the next month's first second, as in POSIX time. O(n) in the length of the text.
  package init?(_ text: String) {
    var reader = Reader(bytes: Array(text.utf8)[...])
    guard let date = reader.date() else { return nil }
    let midnight = date.daysSinceEpoch * 86_400
    guard !reader.bytes.isEmpty else {
      (seconds, nanoseconds) = (Int64(midnight), 0)
      return
    }
    guard reader.take("T"), let clock = reader.clock(), let fraction = reader.fraction(), let offset = reader.offset(),
      reader.bytes.isEmpty
    else { return nil }
    let whole = midnight + clock.seconds - offset
    guard !clock.isLeapSecond || Self.beginsMonth(whole) else { return nil }
    (seconds, nanoseconds) = (Int64(whole), fraction)
  }

  /// Returns true if a month begins at this number of seconds after 1970-01-01T00:00:00Z.
  private static func beginsMonth(_ seconds: Int) -> Bool {
    seconds.isMultiple(of: 86_400) && CivilDate(daysSinceEpoch: seconds / 86_400).day == 1
  }

  /// Returns the seconds of an offset that is the whole text.
  fileprivate static func offset(_ bytes: ArraySlice<UInt8>) -> Int? {
    var reader = Reader(bytes: bytes)
    return reader.offset().flatMap { reader.bytes.isEmpty ? $0 : nil }
  }

  /// Orders instants by time.
  package static func < (left: RFC3339Instant, right: RFC3339Instant) -> Bool {
    (left.seconds, left.nanoseconds) < (right.seconds, right.nanoseconds)
  }

  /// Removes the parts of a text from its front; each method returns nil if something else is there.
  private struct Reader {
    var bytes: ArraySlice<UInt8>

    /// Removes a character; a letter in either case. Returns false if another one is there.
    mutating func take(_ letter: Unicode.Scalar) -> Bool {
      guard let first = bytes.first, first == UInt8(ascii: letter) || first == UInt8(ascii: letter) | 0x20 else {
        return false
      }
      bytes.removeFirst()
      return true
    }

    /// Removes a number of `count` digits.
    mutating func number(_ count: Int) -> Int? {
      let digits = bytes.prefix(count)
      guard digits.count == count, digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
      bytes.removeFirst(count)
      return digits.reduce(0) { $0 * 10 + Int($1) - 0x30 }
    }

    /// Removes a number of two digits that is at most `most`.
    mutating func pair(upTo most: Int) -> Int? { number(2).flatMap { $0 <= most ? $0 : nil } }

    mutating func date() -> CivilDate? {
      guard let year = number(4), take("-"), let month = number(2), take("-"), let day = number(2) else { return nil }
      return CivilDate(year: year, month: month, day: day)
    }

    /// Removes a time such as `09:30:00`. Returns it in seconds, and whether its second is 60.
    mutating func clock() -> (seconds: Int, isLeapSecond: Bool)? {
      guard let hour = pair(upTo: 23), take(":"), let minute = pair(upTo: 59), take(":"), let second = pair(upTo: 60)
      else { return nil }
      return (hour * 3_600 + minute * 60 + second, second == 60)
    }

    /// Removes a fraction such as `.5`. Returns it in nanoseconds; 0 without a point.
    mutating func fraction() -> Int32? {
      guard take(".") else { return 0 }
      let digits = bytes.prefix { (0x30...0x39).contains($0) }
      guard !digits.isEmpty else { return nil }
      bytes.removeFirst(digits.count)
      let counted = digits.prefix(9).reduce(0) { $0 * 10 + Int32($1) - 0x30 }
      return (digits.prefix(9).count..<9).reduce(counted) { value, _ in value * 10 }
    }

    /// Removes an offset: `Z`, `+01:30`, `-08:00`. Returns the seconds that clocks are ahead of UTC.
    mutating func offset() -> Int? {
      if take("Z") { return 0 }
      let isBehind = take("-")
      guard isBehind || take("+"), let hours = pair(upTo: 23), take(":"), let minutes = pair(upTo: 59) else {
        return nil
      }
      return (hours * 3_600 + minutes * 60) * (isBehind ? -1 : 1)
    }
  }
}

/// An instant as a calendar and a clock show it, to the second.
package struct CivilTime {
  /// The day.
  package let date: CivilDate
  /// The day of the week; 0 is a Sunday.
  package let dayOfWeek: Int
  /// From 0 to 23.
  package let hour: Int
  /// From 0 to 59.
  package let minute: Int
  /// From 0 to 59.
  package let second: Int

  /// Creates the time `seconds` after 1970-01-01T00:00:00, without leap seconds.
  package init(secondsSinceEpoch seconds: Int) {
    let days = seconds >= 0 ? seconds / 86_400 : (seconds - 86_399) / 86_400
    let rest = seconds - days * 86_400
    date = CivilDate(daysSinceEpoch: days)
    // 1970-01-01 was a Thursday.
    dayOfWeek = ((days % 7) + 11) % 7
    (hour, minute, second) = (rest / 3_600, rest % 3_600 / 60, rest % 60)
  }
}

/// A day of the proleptic Gregorian calendar, to and from the number of days since 1970-01-01.
package struct CivilDate: Equatable, CustomStringConvertible {
  /// The year, from 0, which is 1 BC.
  package let year: Int
  /// From 1.
  package let month: Int
  /// From 1.
  package let day: Int

  private static let daysPerEra = 146_097
  private static let daysBeforeEpoch = 719_468

  /// Creates a day; nil if it does not exist.
  package init?(year: Int, month: Int, day: Int) {
    guard (1...12).contains(month), (1...CivilDate.length(ofMonth: month, year: year)).contains(day) else { return nil }
    (self.year, self.month, self.day) = (year, month, day)
  }

  /// Creates the day that is `days` after 1970-01-01. Years count from March, so that a leap day is the last of its
  /// year.
  package init(daysSinceEpoch days: Int) {
    let shifted = days + CivilDate.daysBeforeEpoch
    let era = (shifted >= 0 ? shifted : shifted - CivilDate.daysPerEra + 1) / CivilDate.daysPerEra
    let dayOfEra = shifted - era * CivilDate.daysPerEra
    let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let marchMonth = (5 * dayOfYear + 2) / 153
    day = dayOfYear - (153 * marchMonth + 2) / 5 + 1
    month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
    year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
  }

  /// The number of days since 1970-01-01.
  package var daysSinceEpoch: Int {
    let marchYear = month <= 2 ? year - 1 : year
    let era = (marchYear >= 0 ? marchYear : marchYear - 399) / 400
    let yearOfEra = marchYear - era * 400
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
    return era * CivilDate.daysPerEra + dayOfEra - CivilDate.daysBeforeEpoch
  }

  /// The day as a `full-date` of RFC 3339: `2010-03-01`.
  package var description: String { "\(year.padded(to: 4))-\(month.padded(to: 2))-\(day.padded(to: 2))" }

  /// The number of days of the year before it.
  package var dayOfYear: Int {
    (1..<month).reduce(day - 1) { $0 + CivilDate.length(ofMonth: $1, year: year) }
  }

  private static func length(ofMonth month: Int, year: Int) -> Int {
    switch month {
    case 2: (year % 4 == 0 && year % 100 != 0) || year % 400 == 0 ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
  }
}

extension BinaryInteger {
  /// Returns the digits of a number that is not negative, padded with zeros to `width` digits.
  package func padded(to width: Int, radix: Int = 10) -> String {
    let digits = String(self, radix: radix)
    return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
  }
}
