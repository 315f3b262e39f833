/// A read-only key whose value is found by following a key path from the object, or by an expression over its keys.
public struct ComputedKey: Sendable {
  /// How the value is found.
  enum Formula: Sendable {
    /// By key-value coding.
    case path(ModelKeyPath)
    /// By a CEL expression.
    case expression(KeyExpression)
  }

  /// The path or expression as written in the schema.
  public let text: String
  /// The type that the schema states for the value, where it does.
  public let declaredType: AttributeType?
  /// How the value is found; nil only while the schema is being compiled.
  var formula: Formula?
  /// What the value is.
  public internal(set) var type: ValueType?
  /// What the value is read from.
  package internal(set) var reads = KeyTree()
  /// What else makes the key notify: what the same key reads in parents (KVO guide, "Registering Dependent Keys").
  package internal(set) var inheritedReads: [KeyTree] = []

  init(text: String, declaredType: AttributeType?) {
    self.text = text
    self.declaredType = declaredType
  }
}
