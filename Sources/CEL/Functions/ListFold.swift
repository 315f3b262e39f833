/// Makes one value from the elements of a list.
protocol ListFold {
  /// Adds an element. Throws when it is not of a type that the function takes.
  mutating func add(_ element: ExpressionValue, _ budget: inout EvaluationBudget) throws(EvaluationError)
  /// The value of all that was added. Throws when it is out of range.
  func value() throws(EvaluationError) -> ExpressionValue
}
