/// `<`, `<=`, `>` or `>=`.
final class OrderNode: ProgramNode {
  private let sign: BinaryOperator
  private let left: any ProgramNode
  private let right: any ProgramNode

  init(_ sign: BinaryOperator, _ left: any ProgramNode, _ right: any ProgramNode) {
    (self.sign, self.left, self.right) = (sign, left, right)
  }

  func evaluate(_ frame: inout EvaluationFrame) throws(EvaluationError) -> ExpressionValue {
    try frame.budget.spend()
    let left = try left.evaluate(&frame)
    let right = try right.evaluate(&frame)
    guard let order = try left.order(to: right, sign.rawValue, &frame.budget) else { return .bool(false) }
    switch sign {
    case .less: return .bool(order < 0)
    case .lessOrEqual: return .bool(order <= 0)
    case .greater: return .bool(order > 0)
    default: return .bool(order >= 0)
    }
  }
}
