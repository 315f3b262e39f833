import CEL

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

  init(type: AttributeType) {
    self.type = type
  }

  /// Whether every value of the type is allowed.
  var isUnconstrained: Bool {
    minimum == nil && maximum == nil && minLength == nil && maxLength == nil && pattern == nil && allowedValues == nil
  }
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
  func matches(_ string: String) -> Bool { program.matches(string) }
}
