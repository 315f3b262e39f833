/// `[a, b]`.
final class ListNode: ProgramNode {
  private let elements: [any ProgramNode]

  init(_ elements: [any ProgramNode]) { self.elements = elements }

  func evaluate(_ frame: inout EvaluationFrame) throws(EvaluationError) -> ExpressionValue {
    try frame.budget.spend(1 + elements.count)
    var values: [ExpressionValue] = []
    values.reserveCapacity(elements.count)
    for element in elements { values.append(try element.evaluate(&frame)) }
    return .list(values)
  }
}
