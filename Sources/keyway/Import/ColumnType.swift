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
