/// `==` or `!=`.
final class EqualityNode: ProgramNode {
  private let left: any ProgramNode
  private let right: any ProgramNode
  private let isNegated: Bool

  init(_ left: any ProgramNode, _ right: any ProgramNode, isNegated: Bool) {
    (self.left, self.right, self.isNegated) = (left, right, isNegated)
  }

  func evaluate(_ frame: inout EvaluationFrame) throws(EvaluationError) -> ExpressionValue {
    try frame.budget.spend()
    let left = try left.evaluate(&frame)
    let right = try right.evaluate(&frame)
    return .bool(try left.isEqual(to: right, &frame.budget) != isNegated)
  }
}
