import CEL
import Support

/// The type of a key that holds a value, and its constraints, named as in JSON Schema (JSON Schema Validation §6).
public struct Attribute: Sendable {
  /// The type of its values.
  public let type: AttributeType
  /// The value that a create fills in if the key is missing, already in the form of the type; nil for none.
  public internal(set) var defaultValue: Value?
  /// The smallest number allowed; nil for no bound.
  public internal(set) var minimum: Value?
  /// The largest number allowed; nil for no bound.
  public internal(set) var maximum: Value?
  /// The minimum length of a string, in Unicode scalars; nil for no bound.
  public internal(set) var minLength: Int?
  /// The maximum length of a string, in Unicode scalars; nil for no bound.
  public internal(set) var maxLength: Int?
  /// The regular expression that a part of the string must match; nil for none.
  public internal(set) var pattern: Pattern?
  /// The only values allowed, in the form of the type; nil if there is no `enum`.
  public internal(set) var allowedValues: [Value]?

  /// True if every value of the type is allowed.
  var isUnconstrained: Bool {
    minimum == nil && maximum == nil && minLength == nil && maxLength == nil && pattern == nil && allowedValues == nil
  }

  // MARK: Validation

  /// The reason why a value is refused, as a clause: `is over the maximum 10`.
  struct Refusal: Error {
    let reason: String
  }

  /// Returns `value` in the form of this attribute's type, or throws the reason why it is refused. A double that stands
  /// for an integer becomes that integer, and an integer becomes a number. `value` must not be null.
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

  /// Returns `value` in the form of this attribute's type; it may still break a constraint.
  func converting(_ value: Value) throws(Refusal) -> Value {
    switch (type, value) {
    case (.string, .string), (.integer, .integer), (.number, .number), (.boolean, .bool): return value
    case (.json, _), (.number, .rounded): return value.settled
    case (.number, .integer(let integer)): return .number(Double(integer))
    case (.integer, .number):
      guard let integer = value.wholeNumber else {
        throw Refusal(reason: "must be a whole number of 64 bits, not \(value.json)")
      }
      return .integer(integer)
    case (.integer, .rounded):
      throw Refusal(reason: "must be exactly a whole number of 64 bits, and is only about \(value.json)")
    case (.date, .string(let text)):
      guard RFC3339.isDate(text) else {
        throw Refusal(
          reason: "must be a date of RFC 3339 such as 2010-03-01 or 2010-03-01T09:30:00Z, not \(value.json)")
      }
      return value
    default: throw Refusal(reason: "must be \(type.article), not \(value.kind)")
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

  /// Returns true if the first of two values of one numeric type is less than the second.
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

  /// Returns `value`, of any attribute type, in the form of this one and under its constraints, or throws the reason
  /// why it has none.
  ///
  /// Strings stand for the JSON that they contain: `"12.5"` for the number, `"true"` for the boolean, and the reverse.
  /// A conversion that would lose anything is refused: a fraction, the last digits of a large integer, the contents of
  /// an array or an object.
  func converted(_ value: Value) throws(Refusal) -> Value {
    switch (type, value) {
    case (.string, .bool), (.string, .integer), (.string, .number): return try accepting(.string(value.json))
    case (.string, .reference(let reference)), (.json, .reference(let reference)):
      return try accepting(.string(reference.text))
    case (.integer, .string(let text)), (.number, .string(let text)), (.boolean, .string(let text)):
      switch try? Value(json: text) {
      case let meant? where meant.isScalarOfJSON: return try converted(meant)
      default: throw Refusal(reason: "is \(value.json), which does not stand for \(type.article)")
      }
    case (.number, .integer(let integer)):
      guard Int64(exactly: Double(integer)) == integer else {
        throw Refusal(reason: "is \(value.json), which no double holds exactly")
      }
      return try accepting(value)
    default: return try accepting(value)
    }
  }

  /// Returns true if both allow the same values.
  func hasSameConstraints(as other: Attribute) -> Bool {
    type == other.type && minimum == other.minimum && maximum == other.maximum && minLength == other.minLength
      && maxLength == other.maxLength && pattern?.text == other.pattern?.text && allowedValues == other.allowedValues
  }
}

/// The type of an attribute.
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
  /// The type with its article, for messages.
  var article: String { self == .integer ? "an integer" : "a \(rawValue)" }
}

/// A compiled regular expression with its text, in the syntax of RE2: it has no references to groups and no lookahead
/// or lookbehind, which no engine matches in linear time. `\d`, `\s`, `\w` and `\b` are those of Unicode.
public struct Pattern: Sendable {
  /// The expression as written in the schema.
  public let text: String
  private let program: RegexProgram

  /// Compiles `text`; throws if it is not a regular expression.
  init(_ text: String) throws(RegexError) {
    self.text = text
    program = try RegexProgram(text, isUnicode: true)
  }

  /// Returns true if some part of `string` matches (JSON Schema Validation §6.3.3).
  fileprivate func matches(_ string: String) -> Bool { program.matches(string) }
}

extension Value {
  /// True for a number, true and false.
  fileprivate var isScalarOfJSON: Bool {
    switch self {
    case .bool, .integer, .number: true
    default: false
    }
  }
}
