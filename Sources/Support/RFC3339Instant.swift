/// A moment that a date of RFC 3339 names, to compare dates that are written with different offsets.
package struct RFC3339Instant: Hashable, Sendable, Comparable {
  /// Whole seconds since 1970-01-01T00:00:00Z without leap seconds, rounded down.
  package let seconds: Int64
  /// What is beyond the whole seconds, from 0 to 999,999,999.
  package let nanoseconds: Int32

  /// The moment of a `date-time`, or of the midnight UTC with which a `full-date` begins; nil where `text` is neither,
  /// or names a day or a time that does not exist.
  ///
  /// A fraction counts to nine digits, more are cut off. The second 60, which §5.7 allows at the end of a month in UTC,
  /// is the moment of the next month's first second, as in POSIX time. O(n) in the length of the text.
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

  /// Whether a month begins so many seconds after 1970-01-01T00:00:00Z.
  private static func beginsMonth(_ seconds: Int) -> Bool {
    seconds.isMultiple(of: 86_400) && CivilDate(daysSinceEpoch: seconds / 86_400).day == 1
  }

  /// The seconds of an offset that is the whole of a text.
  static func offset(_ bytes: ArraySlice<UInt8>) -> Int? {
    var reader = Reader(bytes: bytes)
    return reader.offset().flatMap { reader.bytes.isEmpty ? $0 : nil }
  }

  /// By time.
  package static func < (left: RFC3339Instant, right: RFC3339Instant) -> Bool {
    (left.seconds, left.nanoseconds) < (right.seconds, right.nanoseconds)
  }

  /// Takes the parts of a text off its front; each is nil where something else stands there.
  private struct Reader {
    var bytes: ArraySlice<UInt8>

    /// Takes a character, a letter of either case.
    mutating func take(_ letter: Unicode.Scalar) -> Bool {
      guard let first = bytes.first, first == UInt8(ascii: letter) || first == UInt8(ascii: letter) | 0x20 else {
        return false
      }
      bytes.removeFirst()
      return true
    }

    /// A number of so many digits.
    mutating func number(_ count: Int) -> Int? {
      let digits = bytes.prefix(count)
      guard digits.count == count, digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
      bytes.removeFirst(count)
      return digits.reduce(0) { $0 * 10 + Int($1) - 0x30 }
    }

    /// Two digits up to `most`.
    mutating func pair(upTo most: Int) -> Int? { number(2).flatMap { $0 <= most ? $0 : nil } }

    mutating func date() -> CivilDate? {
      guard let year = number(4), take("-"), let month = number(2), take("-"), let day = number(2) else { return nil }
      return CivilDate(year: year, month: month, day: day)
    }

    /// `09:30:00` as seconds, and whether its second is 60.
    mutating func clock() -> (seconds: Int, isLeapSecond: Bool)? {
      guard let hour = pair(upTo: 23), take(":"), let minute = pair(upTo: 59), take(":"), let second = pair(upTo: 60)
      else { return nil }
      return (hour * 3_600 + minute * 60 + second, second == 60)
    }

    /// The nanoseconds of `.5`; 0 without a point.
    mutating func fraction() -> Int32? {
      guard take(".") else { return 0 }
      let digits = bytes.prefix { (0x30...0x39).contains($0) }
      guard !digits.isEmpty else { return nil }
      bytes.removeFirst(digits.count)
      let counted = digits.prefix(9).reduce(0) { $0 * 10 + Int32($1) - 0x30 }
      return (digits.prefix(9).count..<9).reduce(counted) { value, _ in value * 10 }
    }

    /// The seconds that clocks are ahead of UTC: `Z`, `+01:30`, `-08:00`.
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
