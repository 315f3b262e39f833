/// A node of an expression that is ready to be evaluated: names are numbers, operators are code.
protocol ProgramNode: AnyObject, Sendable {
  /// The value. Throws why there is none.
  func evaluate(_ frame: inout EvaluationFrame) throws(EvaluationError) -> ExpressionValue
}
