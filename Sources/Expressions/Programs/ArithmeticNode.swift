/// `+`, `-`, `*`, `/` or `%`.
final class ArithmeticNode: ProgramNode {
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
    return try result(left, right, &frame.budget)
  }

  @inline(__always)
  private func result(
    _ left: ExpressionValue, _ right: ExpressionValue, _ budget: inout EvaluationBudget
  ) throws(EvaluationError) -> ExpressionValue {
    switch (left, right) {
    case (.double(let left), .double(let right)): return .double(try Arithmetic.doubles(sign, left, right))
    case (.int(let left), .int(let right)): return .int(try Arithmetic.integers(sign, left, right, "int"))
    case (.uint(let left), .uint(let right)): return .uint(try Arithmetic.integers(sign, left, right, "uint"))
    default: return try Arithmetic.others(sign, left, right, &budget)
    }
  }
}
