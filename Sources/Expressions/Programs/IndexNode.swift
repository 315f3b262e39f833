/// `operand[index]`.
final class IndexNode: ProgramNode {
  private let operand: any ProgramNode
  private let index: any ProgramNode

  init(_ operand: any ProgramNode, _ index: any ProgramNode) { (self.operand, self.index) = (operand, index) }

  func evaluate(_ frame: inout EvaluationFrame) throws(EvaluationError) -> ExpressionValue {
    try frame.budget.spend()
    let container = try operand.evaluate(&frame)
    let index = try index.evaluate(&frame)
    return try IndexNode.element(container, index, &frame.budget)
  }

  private static func element(
    _ container: ExpressionValue, _ index: ExpressionValue, _ budget: inout EvaluationBudget
  ) throws(EvaluationError) -> ExpressionValue {
    if case .map(let map) = container {
      if case .string(let text) = index { try budget.spend(bytes: text.utf8.count) }
      guard let key = ExpressionMapKey(index), let value = map[key] else { throw .noSuchKey(index.debugText) }
      return value
    }
    guard let list = container.asList else { throw .noOverload("[]", container, index) }
    let place: Int?
    switch index {
    case .int(let number): place = Int(exactly: number)
    case .uint(let number): place = Int(exactly: number)
    case .double(let number): place = Int(exactly: number)
    default: throw .noOverload("[]", container, index)
    }
    guard let place, place >= 0, place < list.count else {
      throw .invalid("index \(index.debugText) is not in a list of \(list.count)")
    }
    return try list.element(at: place)
  }
}
