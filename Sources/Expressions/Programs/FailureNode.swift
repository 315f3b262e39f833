/// A name that stands for nothing, in an expression whose faults are left to evaluation.
final class FailureNode: ProgramNode {
  private let message: String

  init(_ message: String) { self.message = message }

  func evaluate(_ frame: inout EvaluationFrame) throws(EvaluationError) -> ExpressionValue {
    try frame.budget.spend()
    throw EvaluationError(.undeclaredReference, message)
  }
}
