/// `operand.name`.
final class SelectNode: ProgramNode {
  private let operand: any ProgramNode
  private let name: String
  private let index: Int

  init(_ operand: any ProgramNode, _ name: String, _ index: Int) {
    (self.operand, self.name, self.index) = (operand, name, index)
  }

  func evaluate(_ frame: inout EvaluationFrame) throws(EvaluationError) -> ExpressionValue {
    try frame.budget.spend()
    switch try operand.evaluate(&frame) {
    case .object(let object): return try object.field(named: name, index: index, budget: &frame.budget)
    case .map(let map):
      try frame.budget.spend(bytes: name.utf8.count)
      guard let value = map[ExpressionMapKey(name)] else { throw .noSuchKey(name) }
      return value
    case let other: throw EvaluationError(.noSuchKey, "\(other.typeName) has no key '\(name)'")
    }
  }
}
