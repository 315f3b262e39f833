/// An activation for expressions without variables, such as those of one element alone.
final class NoVariables: ExpressionActivation {
  static let only = NoVariables()

  func value(
    ofVariable name: String, index: Int, budget: inout EvaluationBudget
  ) throws(EvaluationError) -> ExpressionValue {
    throw EvaluationError(.undeclaredReference, "undeclared reference to '\(name)'")
  }
}
