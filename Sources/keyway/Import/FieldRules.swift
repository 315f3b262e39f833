import KeyValueModel

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
