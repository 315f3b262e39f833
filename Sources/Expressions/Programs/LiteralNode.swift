/// A constant.
final class LiteralNode: ProgramNode {
  let value: ExpressionValue

  init(_ value: ExpressionValue) { self.value = value }

  func evaluate(_ frame: inout EvaluationFrame) throws(EvaluationError) -> ExpressionValue {
    try frame.budget.spend()
    return value
  }
}
