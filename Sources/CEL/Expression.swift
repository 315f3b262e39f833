/// An expression that has been parsed and not yet been checked.
package struct Expression: Sendable {
  /// The name by which an expression speaks of the object it belongs to: `this.a` is `a`.
  package static let rootVariable = "this"

  /// The text it was read from.
  package let text: String
  /// The top of its syntax tree.
  package let root: ExpressionNode
  /// How many nodes were made for the tree; their numbers are below it.
  let nodeCount: Int
  let limits: ExpressionLimits

  /// Reads the text of an expression (CEL language definition, Syntax). Throws the position and the kind of what is
  /// wrong with it, or which of `limits` it is over.
  package init(parsing text: String, limits: ExpressionLimits = ExpressionLimits()) throws(ExpressionError) {
    self.text = text
    self.limits = limits
    var parser = try Parser(text, limits)
    root = try parser.parse()
    nodeCount = parser.nodeCount
    guard ValueNesting.depth(of: root) <= limits.nestingDepth else {
      throw ExpressionError("the expression makes lists that are nested too deep", at: root.offset, in: text)
    }
  }

  /// Finds the types and the names of the expression in `environment`. Throws the first fault, with those after it in
  /// `further`: a name that is not declared, a key that an entity does not have, operands that no operator takes.
  package func checked(in environment: any ExpressionEnvironment) throws(ExpressionError) -> CheckedExpression {
    try CheckedExpression(self, in: environment, isLenient: false)
  }

  /// Finds the names of the expression in `environment`, and leaves all faults to evaluation: for values of
  /// unknown types. Throws only for a pattern that is no regular expression.
  package func unchecked(in environment: any ExpressionEnvironment) throws(ExpressionError) -> CheckedExpression {
    try CheckedExpression(self, in: environment, isLenient: true)
  }
}
