/// `has(operand.name)`.
final class PresenceNode: ProgramNode {
  private let operand: any ProgramNode
  private let name: String
  private let index: Int

  init(_ operand: any ProgramNode, _ name: String, _ index: Int) {
    (self.operand, self.name, self.index) = (operand, name, index)
  }

  func evaluate(_ frame: inout EvaluationFrame) throws(EvaluationError) -> ExpressionValue {
    try frame.budget.spend()
    switch try operand.evaluate(&frame) {
    case .object(let object):
      return .bool(try object.hasField(named: name, index: index, budget: &frame.budget))
    case .map(let map):
      try frame.budget.spend(bytes: name.utf8.count)
      return .bool(map[ExpressionMapKey(name)] != nil)
    case let other: throw EvaluationError(.noSuchKey, "\(other.typeName) has no key '\(name)'")
    }
  }
}
