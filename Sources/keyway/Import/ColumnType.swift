import KeyValueModel
import KeywayClient

/// How the text of a column becomes a value, by what the schema says of its key.
enum ColumnType: Hashable, Sendable {
  case string, integer, number, boolean, date, json
  /// The id of an object of that entity.
  case reference(entity: String)

  /// By the JSON Schema of a property; nil for one that cannot be written. A type may be a name or a list with `null`.
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

  /// The value of a field, nil for one with nothing in it: the key is left out, so that its default holds. Throws where
  /// the text is no value of this type, with the options that would read it.
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
      // What the schema leaves open may be JSON, or plain text without quotation marks.
      return (try? Value(json: text)) ?? .string(text)
    }
  }

  /// A text without the spaces around it, which mean nothing beside numbers, dates and truth values.
  private func trimmed(_ text: String) -> String {
    switch self {
    case .string, .json, .reference: text
    case .integer, .number, .boolean, .date:
      text.contains(" ") ? String(text.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed()) : text
    }
  }
}

/// How the values of a file are written, as the options of an import say it.
struct FieldRules: Hashable, Sendable {
  /// The texts of fields that hold no value.
  var nulls: Set<String> = []
  /// The texts for true, in lower case.
  var trueTexts: Set<String> = ["true"]
  /// The texts for false, in lower case.
  var falseTexts: Set<String> = ["false"]
  /// The signs between the digits of numbers.
  var numbers = DecimalText.Style()
  /// The form of dates; nil for RFC 3339.
  var dateFormat: DateFormat?

  // MARK: What would have helped

  /// The texts that files often have in place of nothing, in lower case.
  private static let usualNulls: Set<String> = [
    "null", "\\n", "na", "n/a", "#n/a", "nan", "none", "nil", "-", "--", "?", "(null)",
  ]
  /// The texts that files often have for true and false, in lower case.
  private static let usualBooleans = [("1", "0"), ("t", "f"), ("yes", "no"), ("y", "n"), ("on", "off"), ("1.0", "0.0")]
  /// Signs between digits that files often have, and the options that say so; the plainest first.
  private static let usualNumbers: [(style: DecimalText.Style, options: String)] = [
    (.init(), "--decimal ."), (.init(point: ","), "--decimal ,"), (.init(thousands: ","), "--thousands ,"),
    (.init(point: ",", thousands: "."), "--decimal , --thousands ."), (.init(thousands: "'"), "--thousands \"'\""),
    (.init(thousands: " "), "--thousands ' '"), (.init(point: ",", thousands: " "), "--decimal , --thousands ' '"),
  ]

  /// The options that read a text which a column of this type refuses; nil where none does.
  func hint(for text: String, as type: ColumnType) -> String? {
    if Self.usualNulls.contains(text.lowercased()) { return "--null '\(text)' takes such fields for empty ones" }
    switch type {
    case .integer, .number: return numberHint(text, as: type)
    case .boolean:
      guard let (yes, no) = Self.usualBooleans.first(where: { [$0.0, $0.1].contains(text.lowercased()) }) else {
        return "--true TEXT and --false TEXT say what else means true and false"
      }
      return "--true \(yes) --false \(no) reads \(text)"
    case .date:
      if let suggestion = DateText.suggestion(for: text) { return suggestion }
      return dateFormat == nil
        ? "--date-format says how the dates of the file are written, such as '%d.%m.%Y'" : nil
    case .string, .json, .reference: return nil
    }
  }

  /// Each reading of a text as a number, with the plainest options for it: `1,234` may be 1.234 and 1234.
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

/// A decimal number as a file writes it: `-1234.50`, `5.0`, `1e3`, or with other signs between its digits.
struct DecimalText: Sendable {
  /// The signs between digits.
  struct Style: Hashable, Sendable {
    /// The sign before the fraction.
    var point: Character = "."
    /// The sign between groups of three digits; nil where there are none.
    var thousands: Character?
  }

  private let isNegative: Bool
  /// The digits without zeros at either end; the number is that integer times ten to the `exponent`.
  private let digits: Substring
  private let exponent: Int

  /// Reads a text; nil where it is not a number in this style.
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
      // So many digits of an exponent are beyond every double, and cannot overflow here.
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

  /// The double next to it; nil beyond the largest ones.
  var number: Double? {
    let number = Double("\(isNegative ? "-" : "")\(digits.isEmpty ? "0" : digits)e\(exponent)")
    return number?.isFinite == true ? number : nil
  }

  /// The integer that it is; nil where it is not whole, or not of 64 bits.
  var integer: Int64? {
    if digits.isEmpty { return 0 }
    // An integer of 64 bits has at most 19 digits.
    guard exponent >= 0, digits.count + exponent <= 19 else { return nil }
    return Int64((isNegative ? "-" : "") + digits + String(repeating: "0", count: exponent))
  }
}

/// The ids that rows get.
enum ImportID {
  /// The id of a row: the texts of its id columns joined by `-`, spaces too as `-`.
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
    scalar.value < 0x20 || scalar.value == 0x7F ? "U+00" + String(scalar.value, radix: 16) : "“\(scalar)”"
  }
}

/// The texts that the ids of an import were made of, by which different texts with one id are found.
///
/// Spaces become `-` in an id, and columns are joined with it: only ids with a `-` more than those between the columns
/// can be made of other texts too. Of those, the last are remembered.
struct KnownIDs: Sendable {
  /// The bytes that an entry takes beside its texts, estimated.
  private static let entryBytes = 96

  private struct Source: Sendable {
    let line: Int
    let text: String
  }

  /// The most bytes that half of what is remembered may take.
  private let capacity: Int
  private var recent: [String: Source] = [:]
  private var older: [String: Source] = [:]
  private var recentBytes = 0

  /// None yet. `bytes` is about what is held at most.
  init(bytes: Int = ImportLimits().heldBytes) { capacity = bytes / 2 }

  /// Takes in the id of a line and the texts of its columns. Throws where an earlier line has the same id, made of
  /// other texts.
  mutating func insert(_ id: String, of parts: [String], line: Int) throws(InvalidCell) {
    guard id.utf8.count(where: { $0 == UInt8(ascii: "-") }) >= parts.count else { return }
    // No id has a comma.
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
