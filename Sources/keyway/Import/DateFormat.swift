import CLinux
import Glibc
import Notation

/// Dates in a format of `strptime(3)`, turned into those of RFC 3339.
struct DateFormat: Hashable, Sendable {
  /// The format as `strptime` reads it: `%b %d %Y`.
  let format: String
  /// Whether the format reads a time of day; without one, the result is a day.
  let hasTime: Bool

  /// A format; nothing in it can be wrong before there is a text to read.
  init(_ format: String) {
    self.format = format
    let conversions = Self.conversions(format)
    hasTime = conversions.contains { "HIMSTRrpcXsklzZ".contains($0) }
  }

  /// The text as `YYYY-MM-DD`, or as `YYYY-MM-DDThh:mm:ssZ` where the format has a time; without a zone in the format,
  /// the text is taken for UTC.
  func date(_ text: String) throws(InvalidCell) -> String {
    var parts = tm()
    parts.tm_mday = 1
    let isWhole = text.withCString { start in
      guard let end = keyway_strptime(start, format, &parts) else { return false }
      return end.pointee == 0
    }
    guard isWhole else { throw InvalidCell(reason: "\(text) is no date of the form \(format)") }
    // strptime takes February 31; timegm moves it to March, by which it is found out.
    let (day, offset) = (parts.tm_mday, parts.tm_gmtoff)
    let local = timegm(&parts)
    guard parts.tm_mday == day else { throw InvalidCell(reason: "\(text) is no day of the calendar") }
    let time = CivilTime(secondsSinceEpoch: local - offset)
    guard (0...9999).contains(time.date.year) else {
      throw InvalidCell(reason: "\(text) has a year of more than four digits")
    }
    return hasTime ? RFC3339.dateTime(time) : time.date.description
  }

  /// Formats in which files often have their dates. Where two take the same text, the first of them is suggested.
  private static let usual = [
    "%b %d %Y", "%b %d, %Y", "%d %b %Y", "%d-%b-%Y", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%Y/%m/%d", "%Y%m%d",
    "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%m/%d/%Y %H:%M", "%d.%m.%Y %H:%M",
  ]

  /// A format of the usual ones in which the text is a date, as a suggestion; nil where there is none.
  static func suggestion(for text: String) -> DateFormat? {
    usual.lazy.map(DateFormat.init).first { (try? $0.date(text)) != nil }
  }

  /// The letters behind the `%` signs, modifiers left out.
  private static func conversions(_ format: String) -> [Character] {
    var result: [Character] = []
    var rest = format[...]
    while let percent = rest.firstIndex(of: "%") {
      rest = rest[rest.index(after: percent)...].drop { "EO_-0^#".contains($0) }
      guard let letter = rest.popFirst() else { break }
      result.append(letter)
    }
    return result
  }
}
