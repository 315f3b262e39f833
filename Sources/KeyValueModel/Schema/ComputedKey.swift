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
  private(set) var formula: Formula?
  /// What the value is: of the declared type, where what the formula gives can be made one of it.
  public private(set) var type: ValueType?
  /// The declared type where what the formula gives may be of another: the value is then made one of it, or null.
  private(set) var conversion: AttributeType?
  /// What the value is read from.
  package private(set) var reads = KeyTree()
  /// What else makes the key notify: what the same key reads in parents (KVO guide, "Registering Dependent Keys").
  package internal(set) var inheritedReads: [KeyTree] = []

  init(text: String, declaredType: AttributeType?) {
    self.text = text
    self.declaredType = declaredType
  }

  /// The value is found so from now on.
  mutating func resolve(to formula: Formula) {
    self.formula = formula
    reads = formula.reads
    type = formula.type
    guard let declaredType, declaredType != .json else { return }
    let isConverted =
      switch (declaredType, formula.type) {
      case (_, .attribute(.json)), (.number, .attribute(.integer)): true
      default: false
      }
    if isConverted { type = .attribute(declaredType) }
    // Sums and unsigned integers go beyond the integers of 64 bits.
    let mayOverflow =
      switch formula {
      case .path(let path): path.operation?.function == .sum && declaredType == .integer
      case .expression(let expression): expression.isUnsigned
      }
    conversion = isConverted || mayOverflow ? declaredType : nil
  }

  /// A value in the form of the declared type; nil where it has another one.
  func converting(_ value: Value) -> Value? {
    guard let conversion, !value.isNull else { return value }
    return try? Attribute(type: conversion).accepting(value)
  }
}
