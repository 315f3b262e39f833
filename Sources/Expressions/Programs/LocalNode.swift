/// A comprehension's variable.
final class LocalNode: ProgramNode {
  private let number: Int

  init(_ number: Int) { self.number = number }

  func evaluate(_ frame: inout EvaluationFrame) throws(EvaluationError) -> ExpressionValue {
    try frame.budget.spend()
    return frame.locals[number]
  }
}
