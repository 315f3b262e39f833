/// `matches` with a pattern that is a constant.
final class MatchNode: ProgramNode {
  private let operand: any ProgramNode
  private let program: RegexProgram

  init(_ operand: any ProgramNode, _ program: RegexProgram) { (self.operand, self.program) = (operand, program) }

  func evaluate(_ frame: inout EvaluationFrame) throws(EvaluationError) -> ExpressionValue {
    try frame.budget.spend()
    let value = try operand.evaluate(&frame)
    guard case .string(let text) = value else { throw .noOverload("matches", value, .string("")) }
    return .bool(try RegexMachine.matches(program, text, &frame.budget))
  }
}
