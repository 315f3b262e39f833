/// `sum` of a list whose type of elements is known, which decides what the sum of none is.
final class SumNode: ProgramNode {
  private let operand: any ProgramNode
  private let emptyValue: ExpressionValue

  init(_ operand: any ProgramNode, emptyValue: ExpressionValue) {
    (self.operand, self.emptyValue) = (operand, emptyValue)
  }

  func evaluate(_ frame: inout EvaluationFrame) throws(EvaluationError) -> ExpressionValue {
    try frame.budget.spend()
    return try AggregateFunctions.sum(operand.evaluate(&frame), emptyValue: emptyValue, &frame.budget)
  }
}
