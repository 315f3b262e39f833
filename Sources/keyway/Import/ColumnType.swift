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

  /// The value of a field, nil for one with nothing in it: the key is left out, so that its default holds.
  func value(_ field: CSVField, dateFormat: DateFormat?) throws(InvalidCell) -> Value? {
    let text = field.text
    if text.isEmpty { return self == .string && field.isQuoted ? .string("") : nil }
    switch self {
    case .string: return .string(text)
    case .reference(let entity): return .string("\(entity)/\(try ImportID.id(of: [text]))")
    case .integer:
      guard let integer = Int64(text) else { throw InvalidCell(reason: "is no integer of 64 bits: \(text)") }
      return .integer(integer)
    case .number:
      guard let number = Double(text), number.isFinite else { throw InvalidCell(reason: "is no number: \(text)") }
      return .number(number)
    case .boolean:
      switch text.lowercased() {
      case "true": return .bool(true)
      case "false": return .bool(false)
      default: throw InvalidCell(reason: "is neither true nor false: \(text)")
      }
    case .date: return .string(try dateFormat?.date(text) ?? text)
    case .json:
      // What the schema leaves open may be JSON, or plain text without quotation marks.
      return (try? Value(json: text)) ?? .string(text)
    }
  }
}
