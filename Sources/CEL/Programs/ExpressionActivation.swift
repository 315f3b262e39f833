/// What gives an expression the values of its variables while it is evaluated.
package protocol ExpressionActivation: Sendable {
  /// The value of a variable; `index` is what the environment gave for it, else -1. What it costs to compute is spent
  /// from `budget`. Throws `undeclaredReference` when there is none, or whatever made it impossible to compute it.
  func value(
    ofVariable name: String, index: Int, budget: inout EvaluationBudget
  ) throws(EvaluationError) -> ExpressionValue
  /// The value of the collection function with this number, see `CheckedExpression.extractingCollectionFunctions`.
  func value(
    ofCollectionFunction index: Int, budget: inout EvaluationBudget
  ) throws(EvaluationError) -> ExpressionValue
}

extension ExpressionActivation {
  /// There are none: for expressions from which nothing was extracted.
  package func value(
    ofCollectionFunction index: Int, budget: inout EvaluationBudget
  ) throws(EvaluationError) -> ExpressionValue {
    throw EvaluationError(.unavailable, "there is no collection function \(index)")
  }
}
