/// A macro that binds a variable to each element of a range (CEL language definition, Macros).
package struct Comprehension: Sendable {
  /// Which macro it is.
  package enum Function: String, Sendable {
    /// Whether the predicate holds for all.
    case all
    /// Whether it holds for any.
    case exists
    /// Whether it holds for exactly one.
    case existsOne = "exists_one"
    /// The transform of all elements, or of those for which the predicate holds.
    case map
    /// The elements for which the predicate holds.
    case filter
  }

  /// The macro.
  package let function: Function
  /// What is visited: a list's elements or a map's keys.
  package let range: ExpressionNode
  /// The name of the variable.
  package let variable: String
  /// The condition; only `map` may have none.
  package let predicate: ExpressionNode?
  /// What `map` gives for each element; others have none.
  package let transform: ExpressionNode?
}
