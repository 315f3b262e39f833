import Support

/// A date format in the notation of `strptime(3)`. Each text is exactly one date in it, or none.
///
/// The C library's own function is not usable: it reads the name of a zone and ignores it, and a week number too,
/// accepts the 366th day of any year, assumes 1900 for a format without a year, and has no fractions of a second.
struct DateFormat: Hashable, Sendable {
  /// The part of a date that a directive reads. The raw value is the directive.
  private enum Field: Character, CaseIterable {
    case year = "Y", yearOfCentury = "y", month = "m", monthName = "b", day = "d", dayOfYear = "j", weekday = "a"
    case hour = "H", hourOfHalf = "I", half = "p", minute = "M", second = "S", fraction = "f", offset = "z"
    case seconds = "s", milliseconds = "Q"

    /// The minimum and maximum number of digits, or nil if it is not a number.
    var digits: ClosedRange<Int>? {
      switch self {
      case .year: 4...4
      case .yearOfCentury: 2...2
      case .month, .day, .hour, .hourOfHalf, .minute, .second: 1...2
      case .dayOfYear: 1...3
      case .fraction: 1...9
      case .seconds, .milliseconds: 1...15
      case .monthName, .weekday, .half, .offset: nil
      }
    }
  }

  private enum Part: Hashable {
    case spaces
    case letter(Character)
    case field(Field, hasAllDigits: Bool)
  }

  /// The format as given.
  let format: String
  private let parts: [Part]
  private let fields: Set<Field>

  /// Parses a format. Throws if a directive is not supported or appears twice, or if the format lacks a part of a date.
  init(_ format: String) throws(InvalidDateFormat) {
    self.format = format
    var parts: [Part] = []
    for (isDirective, letter) in try Self.letters(format) {
      if let field = isDirective ? Field(rawValue: letter) : nil {
        parts.append(.field(field, hasAllDigits: false))
      } else {
        parts.append(letter.isWhitespace ? .spaces : .letter(letter))
      }
    }
    let read = parts.compactMap { if case .field(let field, _) = $0 { field } else { nil } }
    if let field = read.first(where: { field in read.count { $0 == field } > 1 }) {
      throw InvalidDateFormat(description: "%\(field.rawValue) appears twice")
    }
    fields = Set(read)
    func isNumber(_ index: Int) -> Bool {
      guard parts.indices.contains(index), case .field(let field, _) = parts[index] else { return false }
      return field.digits != nil
    }
    // Adjacent numbers must have all their digits.
    self.parts = parts.indices.map { index in
      guard case .field(let field, _) = parts[index] else { return parts[index] }
      return .field(field, hasAllDigits: isNumber(index - 1) || isNumber(index + 1))
    }
    try Self.check(fields)
  }

  // MARK: Reading a format

  private static let aliases: [Character: Character] = [
    "e": "d", "h": "b", "B": "b", "A": "a", "k": "H", "l": "I", "P": "p", "n": " ", "t": " ", "%": "%",
  ]
  private static let shorthands: [Character: String] = [
    "D": "%m/%d/%y", "F": "%Y-%m-%d", "T": "%H:%M:%S", "R": "%H:%M", "r": "%I:%M:%S %p",
  ]
  private static let refusals: [Character: String] = [
    "Z": "is not supported, since IST, for example, names several zones; %z reads +01:00, a format may end in UTC",
    "c": "is not supported: it depends on the language", "x": "is not supported: it depends on the language",
    "X": "is not supported: it depends on the language", "E": "is not supported: it depends on the language",
    "O": "is not supported: it depends on the language", "C": "is not supported; %Y reads a year of four digits",
    "U": "is not supported: weeks have no dates", "V": "is not supported: weeks have no dates",
    "W": "is not supported: weeks have no dates", "G": "is not supported: it is the year of a week",
    "g": "is not supported: it is the year of a week", "u": "is not supported; %a reads the name of a day",
    "w": "is not supported; %a reads the name of a day",
  ]

  /// Returns the characters of a format, each with true if it is a directive.
  private static func letters(_ format: String) throws(InvalidDateFormat) -> [(isDirective: Bool, letter: Character)] {
    var result: [(isDirective: Bool, letter: Character)] = []
    var rest = format[...]
    while let letter = rest.popFirst() {
      guard letter == "%" else {
        result.append((false, letter))
        continue
      }
      // The padding flags of strftime have no meaning for reading.
      rest = rest.drop { "-_0^#".contains($0) }
      guard let directive = rest.popFirst() else { throw InvalidDateFormat(description: "it ends with %") }
      if let shorthand = shorthands[directive] {
        result += try letters(shorthand)
      } else if let alias = aliases[directive] {
        result.append((alias.isLetter, alias))
      } else if Field(rawValue: directive) != nil {
        result.append((true, directive))
      } else {
        throw InvalidDateFormat(description: "%\(directive) \(refusals[directive] ?? "is not a directive")")
      }
    }
    return result
  }

  private static func check(_ fields: Set<Field>) throws(InvalidDateFormat) {
    /// Throws unless the format has exactly one of these fields.
    func one(_ what: String, of choices: Set<Field>) throws(InvalidDateFormat) {
      let count = fields.intersection(choices).count
      if count == 0 { throw InvalidDateFormat(description: "it names no \(what)") }
      if count > 1 { throw InvalidDateFormat(description: "it names the \(what) twice") }
    }
    func want(_ field: Field, with other: Field) throws(InvalidDateFormat) {
      if fields.contains(other), !fields.contains(field) {
        throw InvalidDateFormat(description: "%\(other.rawValue) requires %\(field.rawValue)")
      }
    }
    let moments: Set<Field> = [.seconds, .milliseconds]
    if !fields.isDisjoint(with: moments) {
      guard fields.count == 1 || fields == [.seconds, .fraction] else {
        throw InvalidDateFormat(description: "%s and %Q are whole moments and must be alone")
      }
      return
    }
    try one("year", of: [.year, .yearOfCentury])
    try one("day", of: [.day, .dayOfYear])
    if fields.contains(.dayOfYear) {
      if !fields.isDisjoint(with: [.month, .monthName]) {
        throw InvalidDateFormat(description: "%j is a day of the year and excludes a month")
      }
    } else {
      try one("month", of: [.month, .monthName])
    }
    try want(.half, with: .hourOfHalf)
    try want(.hourOfHalf, with: .half)
    let hours: Set<Field> = [.hour, .hourOfHalf]
    if !fields.isDisjoint(with: hours.union([.minute, .offset])) { try one("hour", of: hours) }
    try want(.minute, with: .second)
    try want(.second, with: .fraction)
  }

  // MARK: Reading a date

  /// Returns the text as `YYYY-MM-DD`, or as `YYYY-MM-DDThh:mm:ssZ` if the format has a time. Without `%z` in the
  /// format, the time is in UTC. Throws if the text is not a date of this format, or is a day or time that does not
  /// exist.
  func date(_ text: String) throws(InvalidCell) -> String {
    var reader = DateReader(text)
    var values: [Field: Int] = [:]
    var fraction = ""
    for part in parts {
      let isRead: Bool
      switch part {
      case .spaces:
        reader.skipSpaces()
        isRead = true
      case .letter(let letter): isRead = reader.take(letter)
      case .field(.fraction, _):
        fraction = reader.digits(1...9) ?? ""
        isRead = !fraction.isEmpty
      case .field(let field, let hasAllDigits):
        values[field] = Self.value(of: field, hasAllDigits, &reader)
        isRead = values[field] != nil
      }
      guard isRead else { throw InvalidCell(reason: "\(text) is not a date of the form \(format)") }
    }
    guard reader.isAtEnd else { throw InvalidCell(reason: "\(text) is not a date of the form \(format)") }
    return try Self.text(values, fraction: fraction, of: text)
  }

  private static func value(of field: Field, _ hasAllDigits: Bool, _ reader: inout DateReader) -> Int? {
    switch field {
    case .monthName: return reader.name(DateReader.months).map { $0 + 1 }
    case .weekday: return reader.name(DateReader.weekdays)
    case .half: return reader.name(["AM", "PM"])
    case .offset: return reader.offset()
    default: break
    }
    guard let digits = field.digits else { return nil }
    let isMoment = field == .seconds || field == .milliseconds
    let isNegative = isMoment && reader.take("-")
    if !isNegative { reader.skipSpaces() }
    let number = reader.digits(hasAllDigits && !isMoment ? digits.upperBound...digits.upperBound : digits).flatMap {
      Int($0)
    }
    return isNegative ? number.map { -$0 } : number
  }

  /// Returns the date of the values that were read.
  private static func text(
    _ values: [Field: Int], fraction: String, of text: String
  ) throws(InvalidCell) -> String {
    if let milliseconds = values[.milliseconds] {
      let rest = (milliseconds % 1_000 + 1_000) % 1_000
      return try moment((milliseconds - rest) / 1_000, fraction: rest.padded(to: 3), of: text)
    }
    if let seconds = values[.seconds] {
      guard seconds >= 0 || fraction.isEmpty else {
        throw InvalidCell(reason: "\(text) is before 1970 with a fraction")
      }
      return try moment(seconds, fraction: fraction, of: text)
    }
    guard let day = day(values) else { throw InvalidCell(reason: "\(text) is not a day of the calendar") }
    if let weekday = values[.weekday] {
      guard CivilTime(secondsSinceEpoch: day.daysSinceEpoch * 86_400).dayOfWeek == weekday else {
        throw InvalidCell(reason: "\(text) is not a \(DateReader.weekdays[weekday])")
      }
    }
    guard let hour = values[.hour] ?? values[.hourOfHalf] else { return day.description }
    let hours = values[.half].map { half in (1...12).contains(hour) ? hour % 12 + half * 12 : 24 } ?? hour
    let (minute, second) = (values[.minute] ?? 0, values[.second] ?? 0)
    guard hours < 24, minute < 60, second <= 60 else { throw InvalidCell(reason: "\(text) is not a time of day") }
    let clock = hours * 3_600 + minute * 60 + min(second, 59) - (values[.offset] ?? 0)
    let date = try moment(day.daysSinceEpoch * 86_400 + clock, fraction: fraction, of: text)
    guard second == 60 else { return date }
    // A leap second, which is at the end of some months.
    let leap = date.prefix("2016-12-31T23:59:".count) + "60" + date.dropFirst("2016-12-31T23:59:59".count)
    guard RFC3339.isDate(String(leap)) else { throw InvalidCell(reason: "\(text) is not a leap second") }
    return String(leap)
  }

  private static func day(_ values: [Field: Int]) -> CivilDate? {
    // As in POSIX, 69 to 99 are years of the last century.
    guard let year = values[.year] ?? values[.yearOfCentury].map({ $0 < 69 ? 2_000 + $0 : 1_900 + $0 }) else {
      return nil
    }
    guard let dayOfYear = values[.dayOfYear] else {
      return CivilDate(year: year, month: values[.month] ?? values[.monthName] ?? 0, day: values[.day] ?? 0)
    }
    guard let first = CivilDate(year: year, month: 1, day: 1) else { return nil }
    let day = CivilDate(daysSinceEpoch: first.daysSinceEpoch + dayOfYear - 1)
    return day.year == year ? day : nil
  }

  private static func moment(_ seconds: Int, fraction: String, of text: String) throws(InvalidCell) -> String {
    let time = CivilTime(secondsSinceEpoch: seconds)
    guard (0...9999).contains(time.date.year) else {
      throw InvalidCell(reason: "\(text) is not within the years 0 to 9999")
    }
    return RFC3339.dateTime(time, fraction: fraction.isEmpty ? "" : "." + fraction)
  }
}

/// An error in a date format.
struct InvalidDateFormat: Error, Hashable, CustomStringConvertible {
  let description: String
}

/// Reads the parts of a date from the front of its text. Each method returns nil or false if the text has something
/// else there.
private struct DateReader {
  static let months = [
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
  ]
  /// The weekdays, from Sunday.
  static let weekdays = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]

  private var rest: Substring

  init(_ text: String) {
    rest = text[...]
  }

  var isAtEnd: Bool { rest.isEmpty }

  mutating func skipSpaces() { rest = rest.drop(while: \.isWhitespace) }

  mutating func take(_ letter: Character) -> Bool {
    guard rest.first == letter else { return false }
    rest.removeFirst()
    return true
  }

  /// Reads as many ASCII digits as there are, up to the maximum. Nil if there are fewer than the minimum.
  mutating func digits(_ count: ClosedRange<Int>) -> String? {
    let digits = rest.prefix(count.upperBound).prefix { $0.isASCII && $0.isNumber }
    guard digits.count >= count.lowerBound else { return nil }
    rest = rest[digits.endIndex...]
    return String(digits)
  }

  /// Reads a name, and returns its index in a list. The name may be shortened to three letters, and in either case.
  mutating func name(_ names: [String]) -> Int? {
    let text = rest.lowercased()
    for length in [Int.max, 3] {
      guard let index = names.firstIndex(where: { text.hasPrefix($0.prefix(length).lowercased()) }) else { continue }
      rest = rest.dropFirst(names[index].prefix(length).count)
      return index
    }
    return nil
  }

  /// Reads an offset from UTC, and returns its seconds: `Z`, `+01`, `+0130`, `+01:30`.
  mutating func offset() -> Int? {
    skipSpaces()
    if take("Z") || take("z") { return 0 }
    let isBehind = take("-")
    guard isBehind || take("+"), let hours = digits(2...2).flatMap({ Int($0) }), hours < 24 else { return nil }
    let hasColon = take(":")
    let minutes = digits(2...2).flatMap { Int($0) }
    guard minutes != nil || !hasColon, minutes ?? 0 < 60 else { return nil }
    return (hours * 3_600 + (minutes ?? 0) * 60) * (isBehind ? -1 : 1)
  }
}

/// Reads dates of RFC 3339 as other programs write them.
enum DateText {
  /// Returns the text as a date of RFC 3339. Nil if it is neither such a date nor one in a slightly different notation.
  ///
  /// A space may replace `T`, as in PostgreSQL and PocketBase, and the offset may be `+00`, `+0000` or `UTC`. Without
  /// an offset, the moment is unknown.
  static func rfc3339(_ text: String) -> String? {
    if RFC3339.isDate(text) { return text }
    let pattern = /(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(:\d\d)?(?:[.,](\d+))? ?(?:(Z|UTC|GMT)|([+-]\d\d)(?::?(\d\d))?)/
    guard let match = text.wholeMatch(of: pattern), match.3 != nil || match.4 == nil else { return nil }
    let offset = match.6.map { "\($0):\(match.7 ?? "00")" } ?? "Z"
    let date = "\(match.1)T\(match.2)\(match.3 ?? ":00")\(match.4.map { ".\($0)" } ?? "")\(offset)"
    return RFC3339.isDate(date) ? date : nil
  }

  /// The formats of dates that are frequent in files.
  private static let usual = formats([
    "%b %d %Y", "%b %d, %Y", "%d %b %Y", "%d-%b-%Y", "%d.%m.%Y", "%d.%m.%y", "%m/%d/%Y", "%d/%m/%Y", "%m/%d/%y",
    "%d/%m/%y", "%d-%m-%Y", "%Y/%m/%d", "%Y%m%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S.%f",
    "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S.%f", "%Y/%m/%d %H:%M:%S", "%m/%d/%Y %H:%M",
    "%d/%m/%Y %H:%M", "%m/%d/%Y %I:%M %p", "%m/%d/%Y %I:%M:%S %p", "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S",
    "%a, %d %b %Y %H:%M:%S %z", "%a, %d %b %Y %H:%M:%S GMT", "%a %b %d %H:%M:%S %Y", "%d/%b/%Y:%H:%M:%S %z",
  ])
  /// The formats of moments as numbers, by their number of digits at present, since any number is a number of seconds.
  private static let moments = [10: formats(["%s"]), 13: formats(["%Q"])]

  private static func formats(_ formats: [String]) -> [DateFormat] { formats.compactMap { try? DateFormat($0) } }

  /// Returns each reading of a text as a date, with the format for it: `01/02/2000` may be in January or in February.
  /// Nil if none of the usual formats reads the text.
  static func suggestion(for text: String) -> String? {
    var dates: [String] = []
    var clauses: [String] = []
    for format in usual + moments[text.count, default: []] {
      guard let date = try? format.date(text), !dates.contains(date) else { continue }
      dates.append(date)
      clauses.append("--date-format '\(format.format)' reads \(text) as \(date)")
    }
    return clauses.isEmpty ? nil : clauses.joined(separator: ", ")
  }
}
