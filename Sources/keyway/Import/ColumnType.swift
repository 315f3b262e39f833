import KeyValueModel
import KeywayClient

/// The conversion of a column's texts to values, by the type of its key in the schema.
enum ColumnType: Hashable, Sendable {
  case string, integer, number, boolean, date, json
  /// The id of an object of that entity.
  case reference(entity: String)

  /// Creates the type from the JSON Schema of a property. Nil for a read-only one. A type may be a name or a list with
  /// `null`.
  init?(schema: JSONObject) {
    if schema["readOnly"] == .bool(true) { return nil }
    let type = schema["type"] ?? .null
    let names = (type.asArray ?? [type]).compactMap(\.asString).filter { $0 != "null" || type.asString != nil }
    let isDate =
      names == ["date"] || schema["keyway:type"] == .string("date")
      || schema["format"]?.asString?.hasPrefix("date") == true
    switch names.first {
    case _ where isDate: self = .date
    case "string" where names.count == 1: self = .string
    case "integer" where names.count == 1: self = .integer
    case "number" where names.count == 1: self = .number
    case "boolean" where names.count == 1: self = .boolean
    default: self = .json
    }
  }

  /// Returns the value of a field. Nil for an empty field: the key is left out, so that its default applies. Throws if
  /// the text is not a value of this type, with the options that would read it.
  func value(_ field: CSVField, _ rules: FieldRules) throws(InvalidCell) -> Value? {
    if rules.nulls.contains(field.text) { return nil }
    let text = trimmed(field.text)
    if text.isEmpty { return self == .string && field.isQuoted ? .string("") : nil }
    func refusal(_ reason: String) -> InvalidCell {
      InvalidCell(reason: "\(reason): \(text)", hint: rules.hint(for: text, as: self))
    }
    switch self {
    case .string: return .string(text)
    case .reference(let entity): return .string("\(entity)/\(try ImportID.id(of: [text]))")
    case .integer:
      guard let integer = DecimalText(text, rules.numbers)?.integer else {
        throw refusal("is not an integer of 64 bits")
      }
      return .integer(integer)
    case .number:
      guard let number = DecimalText(text, rules.numbers)?.number else { throw refusal("is not a number") }
      return .number(number)
    case .boolean:
      if rules.trueTexts.contains(text.lowercased()) { return .bool(true) }
      if rules.falseTexts.contains(text.lowercased()) { return .bool(false) }
      throw refusal("is neither true nor false")
    case .date:
      guard let format = rules.dateFormat else {
        guard let date = DateText.rfc3339(text) else { throw refusal("is not a date of RFC 3339") }
        return .string(date)
      }
      do {
        return .string(try format.date(text))
      } catch {
        throw InvalidCell(reason: error.reason, hint: rules.hint(for: text, as: self))
      }
    case .json:
      // A key without a type may have JSON, or plain text without quotation marks.
      return (try? Value(json: text)) ?? .string(text)
    }
  }

  /// Returns a text without surrounding spaces, which are insignificant in numbers, dates and truth values.
  private func trimmed(_ text: String) -> String {
    switch self {
    case .string, .json, .reference: text
    case .integer, .number, .boolean, .date:
      text.contains(" ") ? String(text.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed()) : text
    }
  }
}

/// The notation of values in a file, from the options of an import.
struct FieldRules: Hashable, Sendable {
  /// The texts of fields without a value.
  var nulls: Set<String> = []
  /// The texts for true, in lower case.
  var trueTexts: Set<String> = ["true"]
  /// The texts for false, in lower case.
  var falseTexts: Set<String> = ["false"]
  /// The separators in numbers.
  var numbers = DecimalText.Style()
  /// The format of dates, or nil for RFC 3339.
  var dateFormat: DateFormat?

  // MARK: What would have helped

  /// The texts that files often have for an absent value, in lower case.
  private static let usualNulls: Set<String> = [
    "null", "\\n", "na", "n/a", "#n/a", "nan", "none", "nil", "-", "--", "?", "(null)",
  ]
  /// The texts that files often have for true and false, in lower case.
  private static let usualBooleans = [("1", "0"), ("t", "f"), ("yes", "no"), ("y", "n"), ("on", "off"), ("1.0", "0.0")]
  /// The separators that files often have in numbers, with the options for them, the simplest first.
  private static let usualNumbers: [(style: DecimalText.Style, options: String)] = [
    (.init(), "--decimal ."), (.init(point: ","), "--decimal ,"), (.init(thousands: ","), "--thousands ,"),
    (.init(point: ",", thousands: "."), "--decimal , --thousands ."), (.init(thousands: "'"), "--thousands \"'\""),
    (.init(thousands: " "), "--thousands ' '"), (.init(point: ",", thousands: " "), "--decimal , --thousands ' '"),
  ]

  /// Returns the options that read a text which a column of this type refuses, or nil if none do.
  func hint(for text: String, as type: ColumnType) -> String? {
    if Self.usualNulls.contains(text.lowercased()) { return "--null '\(text)' treats such fields as empty" }
    switch type {
    case .integer, .number: return numberHint(text, as: type)
    case .boolean:
      guard let (yes, no) = Self.usualBooleans.first(where: { [$0.0, $0.1].contains(text.lowercased()) }) else {
        return "--true TEXT and --false TEXT add texts for true and false"
      }
      return "--true \(yes) --false \(no) reads \(text)"
    case .date:
      if let suggestion = DateText.suggestion(for: text) { return suggestion }
      return dateFormat == nil
        ? "--date-format names the format of the dates, such as '%d.%m.%Y'" : nil
    case .string, .json, .reference: return nil
    }
  }

  /// Returns each reading of a text as a number, with the simplest options for it: `1,234` may be 1.234 or 1234.
  private func numberHint(_ text: String, as type: ColumnType) -> String? {
    var readings: [String] = []
    var clauses: [String] = []
    for (style, options) in Self.usualNumbers where style != numbers {
      guard let decimal = DecimalText(text, style),
        let value = type == .integer ? decimal.integer.map(Value.integer) : decimal.number.map(Value.number),
        !readings.contains(value.json)
      else { continue }
      readings.append(value.json)
      clauses.append("\(options) reads \(text) as \(value.json)")
    }
    return clauses.isEmpty ? nil : clauses.joined(separator: ", ")
  }
}

/// A decimal number as written in a file: `-1234.50`, `5.0`, `1e3`, or with other separators.
struct DecimalText: Sendable {
  /// The separators in numbers.
  struct Style: Hashable, Sendable {
    /// The separator before the fraction.
    var point: Character = "."
    /// The separator between groups of three digits, or nil for none.
    var thousands: Character?
  }

  private let isNegative: Bool
  /// The digits without zeros at either end. The number is this integer times ten to the power of `exponent`.
  private let digits: Substring
  private let exponent: Int

  /// Parses a text. Nil if it is not a number in this style.
  init?(_ text: some StringProtocol, _ style: Style = Style()) {
    var rest = Substring(text)
    isNegative = rest.first == "-"
    if isNegative || rest.first == "+" { rest.removeFirst() }
    func isDigit(_ character: Character) -> Bool { character.isASCII && character.isNumber }
    let whole = rest.prefix { isDigit($0) || $0 == style.thousands }
    rest = rest[whole.endIndex...]
    let groups = whole.split(omittingEmptySubsequences: false) { $0 == style.thousands }
    guard groups.count == 1 || (1...3).contains(groups[0].count) && groups.dropFirst().allSatisfy({ $0.count == 3 })
    else { return nil }
    var fraction: Substring = ""
    if rest.first == style.point {
      fraction = rest.dropFirst().prefix(while: isDigit)
      rest = rest[fraction.endIndex...]
    }
    guard !whole.isEmpty || !fraction.isEmpty else { return nil }
    var exponent = 0
    if rest.first == "e" || rest.first == "E" {
      // An exponent of this length exceeds every double, and cannot overflow here.
      guard rest.count <= 7, let given = Int(rest.dropFirst()) else { return nil }
      exponent = given
    } else if !rest.isEmpty {
      return nil
    }
    var digits = Substring(groups.joined() + fraction).drop { $0 == "0" }
    exponent -= fraction.count
    while digits.last == "0" {
      digits.removeLast()
      exponent += 1
    }
    self.digits = digits
    self.exponent = exponent
  }

  /// The nearest double, or nil if it would be infinite.
  var number: Double? {
    let number = Double("\(isNegative ? "-" : "")\(digits.isEmpty ? "0" : digits)e\(exponent)")
    return number?.isFinite == true ? number : nil
  }

  /// The integer, or nil if the number is not whole or exceeds 64 bits.
  var integer: Int64? {
    if digits.isEmpty { return 0 }
    // An integer of 64 bits has at most 19 digits.
    guard exponent >= 0, digits.count + exponent <= 19 else { return nil }
    return Int64((isNegative ? "-" : "") + digits + String(repeating: "0", count: exponent))
  }
}

/// Makes the ids of rows.
enum ImportID {
  /// Returns the id of a row: the texts of its id columns, joined with `-`. Spaces are replaced with `-` too.
  static func id(of parts: [String]) throws(InvalidCell) -> String {
    let id = parts.joined(separator: "-").replacing(" ", with: "-")
    if let wrong = id.unicodeScalars.first(where: { !isAllowed($0) }) {
      throw InvalidCell(
        reason: "the id \(id) contains \(name(wrong)); an id has letters, digits and . _ ~ - of ASCII only")
    }
    guard !parts.contains(""), !id.isEmpty else { throw InvalidCell(reason: "an id column is empty") }
    guard id.utf8.count <= 128 else { throw InvalidCell(reason: "the id \(id) is longer than 128 characters") }
    guard id != ".", id != ".." else { throw InvalidCell(reason: "\(id) cannot be an id") }
    return id
  }

  private static func isAllowed(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar {
    case "A"..."Z", "a"..."z", "0"..."9", ".", "_", "~", "-": true
    default: false
    }
  }

  private static func name(_ scalar: Unicode.Scalar) -> String {
    guard scalar.value < 0x20 || scalar.value == 0x7F else { return "“\(scalar)”" }
    return "U+00" + (scalar.value < 0x10 ? "0" : "") + String(scalar.value, radix: 16, uppercase: true)
  }
}

/// The texts from which the ids of an import were made, to detect different texts with the same id.
///
/// Spaces become `-` in an id, and columns are joined with it. So only an id with more `-` than those between its
/// columns can have been made from other texts too. Only the last ones of these are remembered.
struct KnownIDs: Sendable {
  /// The estimated size of an entry in bytes, without its texts.
  private static let entryBytes = 96

  private struct Source: Sendable {
    let line: Int
    let text: String
  }

  /// The maximum size in bytes of each half of the entries.
  private let capacity: Int
  private var recent: [String: Source] = [:]
  private var older: [String: Source] = [:]
  private var recentBytes = 0

  /// Creates an empty instance. `bytes` is the approximate maximum size.
  init(bytes: Int = ImportLimits().heldBytes) { capacity = bytes / 2 }

  /// Records the id of a line and the texts of its columns. Throws if an earlier line has the same id, made from other
  /// texts.
  mutating func insert(_ id: String, of parts: [String], line: Int) throws(InvalidCell) {
    guard id.utf8.count(where: { $0 == UInt8(ascii: "-") }) >= parts.count else { return }
    // An id never contains a comma.
    let text = parts.joined(separator: ", ")
    if let earlier = recent[id] ?? older[id] {
      guard earlier.text != text else { return }
      throw InvalidCell(
        reason: "“\(text)” makes the id \(id), which line \(earlier.line) has made of “\(earlier.text)”")
    }
    // An equal text takes no memory of its own.
    recent[id] = Source(line: line, text: text == id ? id : text)
    recentBytes += Self.entryBytes + id.utf8.count + (text == id ? 0 : text.utf8.count)
    guard recentBytes >= capacity else { return }
    older = recent
    recent = [:]
    recentBytes = 0
  }
}
