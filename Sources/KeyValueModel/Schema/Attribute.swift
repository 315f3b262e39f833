import CEL
import Support

/// A key that holds a value: its type, and the constraints in JSON Schema's words (JSON Schema Validation §6).
public struct Attribute: Sendable {
  /// What it holds.
  public let type: AttributeType
  /// What a create fills in where the key is missing; already in the form of the type.
  public internal(set) var defaultValue: Value?
  /// The least number allowed.
  public internal(set) var minimum: Value?
  /// The greatest number allowed.
  public internal(set) var maximum: Value?
  /// The shortest string allowed, in Unicode scalars.
  public internal(set) var minLength: Int?
  /// The longest string allowed, in Unicode scalars.
  public internal(set) var maxLength: Int?
  /// A regular expression that a part of the string must match.
  public internal(set) var pattern: Pattern?
  /// The only values allowed, in the form of the type.
  public internal(set) var allowedValues: [Value]?

  /// Whether every value of the type is allowed.
  var isUnconstrained: Bool {
    minimum == nil && maximum == nil && minLength == nil && maxLength == nil && pattern == nil && allowedValues == nil
  }

  // MARK: Validation

  /// Why a value is refused, as a clause: `is over the maximum 10`.
  struct Refusal: Error {
    let reason: String
  }

  /// `value` in the form of this attribute's type, or why it cannot be: an integer is made of a double that stands for
  /// one, a number of an integer. Null is not for this function.
  func accepting(_ value: Value) throws(Refusal) -> Value {
    let converted = try converting(value)
    try checkRange(converted)
    try checkText(converted)
    if let allowedValues, !allowedValues.contains(where: { $0.withoutSignOfZero == converted.withoutSignOfZero }) {
      let list = allowedValues.map(\.json).joined(separator: ", ")
      throw Refusal(reason: "is \(converted.json), which is none of \(list)")
    }
    return converted
  }

  /// `value` in the form of this attribute's type, which may still break a constraint.
  func converting(_ value: Value) throws(Refusal) -> Value {
    switch (type, value) {
    case (.string, .string), (.integer, .integer), (.number, .number), (.boolean, .bool): return value
    case (.json, _), (.number, .rounded): return value.settled
    case (.number, .integer(let integer)): return .number(Double(integer))
    case (.integer, .number):
      guard let integer = value.wholeNumber else {
        throw Refusal(reason: "wants a whole number of 64 bits and is \(value.json)")
      }
      return .integer(integer)
    case (.integer, .rounded):
      throw Refusal(reason: "wants a whole number of 64 bits and is about \(value.json), but not exactly")
    case (.date, .string(let text)):
      guard RFC3339.isDate(text) else {
        throw Refusal(
          reason: "wants a date of RFC 3339 such as 2010-03-01 or 2010-03-01T09:30:00Z and is \(value.json)")
      }
      return value
    default: throw Refusal(reason: "wants \(type.article) and is \(value.kind)")
    }
  }

  private func checkRange(_ value: Value) throws(Refusal) {
    if let minimum, Self.isLess(value, minimum) {
      throw Refusal(reason: "is \(value.json), under the minimum \(minimum.json)")
    }
    if let maximum, Self.isLess(maximum, value) {
      throw Refusal(reason: "is \(value.json), over the maximum \(maximum.json)")
    }
  }

  /// Compares two values of one numeric type.
  static func isLess(_ left: Value, _ right: Value) -> Bool {
    switch (left, right) {
    case (.integer(let left), .integer(let right)): left < right
    case (.number(let left), .number(let right)): left < right
    default: false
    }
  }

  private func checkText(_ value: Value) throws(Refusal) {
    guard minLength != nil || maxLength != nil || pattern != nil, case .string(let text) = value else { return }
    let length = text.unicodeScalars.count
    if let minLength, length < minLength {
      throw Refusal(reason: "has \(length) characters, fewer than minLength \(minLength)")
    }
    if let maxLength, length > maxLength {
      throw Refusal(reason: "has \(length) characters, more than maxLength \(maxLength)")
    }
    if let pattern, !pattern.matches(text) {
      throw Refusal(reason: "does not match the pattern \(pattern.text)")
    }
  }

  // MARK: Conversion

  /// `value` of any attribute type in the form of this one, under its constraints, or why it has none.
  ///
  /// Texts stand for the JSON that they are: `"12.5"` for the number, `"true"` for the boolean, and the other way
  /// round. What would lose anything is refused: a fraction, the last digits of a large integer, the inside of an array
  /// or an object.
  func converted(_ value: Value) throws(Refusal) -> Value {
    switch (type, value) {
    case (.string, .bool), (.string, .integer), (.string, .number): return try accepting(.string(value.json))
    case (.string, .reference(let reference)), (.json, .reference(let reference)):
      return try accepting(.string(reference.text))
    case (.integer, .string(let text)), (.number, .string(let text)), (.boolean, .string(let text)):
      switch try? Value(json: text) {
      case let meant? where meant.isScalarOfJSON: return try converted(meant)
      default: throw Refusal(reason: "is \(value.json), which does not say \(type.article)")
      }
    case (.number, .integer(let integer)):
      guard Int64(exactly: Double(integer)) == integer else {
        throw Refusal(reason: "is \(value.json), which no double holds exactly")
      }
      return try accepting(value)
    default: return try accepting(value)
    }
  }

  /// Whether both allow the same values.
  func hasSameConstraints(as other: Attribute) -> Bool {
    type == other.type && minimum == other.minimum && maximum == other.maximum && minLength == other.minLength
      && maxLength == other.maxLength && pattern?.text == other.pattern?.text && allowedValues == other.allowedValues
  }
}

/// The types of attributes.
public enum AttributeType: String, Hashable, Sendable, CaseIterable {
  /// Unicode text.
  case string
  /// A whole number of 64 bits.
  case integer
  /// An IEEE double.
  case number
  /// True or false.
  case boolean
  /// A `full-date` or `date-time` of RFC 3339.
  case date
  /// Any JSON value.
  case json
}

extension AttributeType {
  /// The type with its article, for sentences.
  var article: String { self == .integer ? "an integer" : "a \(rawValue)" }
}

/// A compiled regular expression that remembers its text: in the syntax of RE2, so without references to groups and
/// without looking ahead or behind, which no engine matches in linear time. `\d`, `\s`, `\w` and `\b` are those of
/// Unicode.
public struct Pattern: Sendable {
  /// The expression as written in the schema.
  public let text: String
  private let program: RegexProgram

  /// Compiles `text`; throws where it is no regular expression.
  init(_ text: String) throws(RegexError) {
    self.text = text
    program = try RegexProgram(text, isUnicode: true)
  }

  /// Whether some part of `string` matches (JSON Schema Validation §6.3.3).
  fileprivate func matches(_ string: String) -> Bool { program.matches(string) }
}

extension Value {
  /// Whether this is a number, true or false.
  fileprivate var isScalarOfJSON: Bool {
    switch self {
    case .bool, .integer, .number: true
    default: false
    }
  }
}
