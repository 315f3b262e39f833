/// A variable of the environment.
final class VariableNode: ProgramNode {
  private let name: String
  private let index: Int

  init(_ name: String, _ index: Int) { (self.name, self.index) = (name, index) }

  func evaluate(_ frame: inout EvaluationFrame) throws(EvaluationError) -> ExpressionValue {
    try frame.budget.spend()
    return try frame.activation.value(ofVariable: name, index: index, budget: &frame.budget)
  }
}
