/// An expression of one variable, the element of a list, and of nothing else.
package struct ElementExpression: Sendable {
  /// The name of the variable.
  package let variable: String
  /// The type of the expression's values.
  package var type: ExpressionType { expression.type }
  let expression: CheckedExpression
  /// The number of the variable.
  let number: Int

  /// The value for `element`, or why there is none.
  package func evaluate(
    _ element: ExpressionValue, budget: inout EvaluationBudget
  ) -> Result<ExpressionValue, EvaluationError> {
    expression.evaluate(NoVariables.only, local: (number, element), budget: &budget)
  }
}
