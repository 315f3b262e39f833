/// An operator in front of its operand.
package enum UnaryOperator: String, Sendable {
  /// Logical not.
  case not = "!"
  /// The opposite number.
  case negate = "-"
}
