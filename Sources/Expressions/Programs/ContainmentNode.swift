/// `element in container`.
final class ContainmentNode: ProgramNode {
  private let element: any ProgramNode
  private let container: any ProgramNode

  init(_ element: any ProgramNode, _ container: any ProgramNode) {
    (self.element, self.container) = (element, container)
  }

  func evaluate(_ frame: inout EvaluationFrame) throws(EvaluationError) -> ExpressionValue {
    try frame.budget.spend()
    let element = try element.evaluate(&frame)
    let container = try container.evaluate(&frame)
    return .bool(try ContainmentNode.contains(container, element, &frame.budget))
  }

  private static func contains(
    _ container: ExpressionValue, _ element: ExpressionValue, _ budget: inout EvaluationBudget
  ) throws(EvaluationError) -> Bool {
    if case .map(let map) = container {
      if case .string(let text) = element { try budget.spend(bytes: text.utf8.count) }
      return ExpressionMapKey(element).map { map[$0] != nil } ?? false
    }
    guard let list = container.asList else { throw .noOverload("in", element, container) }
    if case .sequence(let sequence) = list, let known = isMember(element, of: sequence) {
      return known
    }
    for index in 0..<list.count {
      try budget.spend()
      if try element.isEqual(to: list.element(at: index), &budget) { return true }
    }
    return false
  }

  private static func isMember(_ element: ExpressionValue, of sequence: any ExpressionSequence) -> Bool? {
    switch element {
    case .object(let object): sequence.contains(identity: object.identity)
    case .string(let text): sequence.contains(identity: text)
    default: nil
    }
  }
}
