/// `!operand` or `-operand`.
final class UnaryNode: ProgramNode {
  private let sign: UnaryOperator
  private let operand: any ProgramNode

  init(_ sign: UnaryOperator, _ operand: any ProgramNode) { (self.sign, self.operand) = (sign, operand) }

  func evaluate(_ frame: inout EvaluationFrame) throws(EvaluationError) -> ExpressionValue {
    try frame.budget.spend()
    let value = try operand.evaluate(&frame)
    switch (sign, value) {
    case (.not, .bool(let flag)): return .bool(!flag)
    case (.negate, .double(let number)): return .double(-number)
    case (.negate, .duration(let duration)): return .duration(try duration.negated())
    case (.negate, .int(let number)):
      guard number != .min else { throw .overflow("int") }
      return .int(-number)
    default: throw EvaluationError(.noSuchOverload, "no such overload: \(sign.rawValue)\(value.typeName)")
    }
  }
}
