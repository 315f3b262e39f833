/// `condition ? first : second`: only one of both is evaluated.
final class ConditionalNode: ProgramNode {
  private let condition: any ProgramNode
  private let first: any ProgramNode
  private let second: any ProgramNode

  init(_ condition: any ProgramNode, _ first: any ProgramNode, _ second: any ProgramNode) {
    (self.condition, self.first, self.second) = (condition, first, second)
  }

  func evaluate(_ frame: inout EvaluationFrame) throws(EvaluationError) -> ExpressionValue {
    try frame.budget.spend()
    let value = try condition.evaluate(&frame)
    guard case .bool(let flag) = value else { throw .notBool(value) }
    return try flag ? first.evaluate(&frame) : second.evaluate(&frame)
  }
}
