/// `{a: b}`.
final class MapNode: ProgramNode {
  private let entries: [(key: any ProgramNode, value: any ProgramNode)]

  init(_ entries: [(key: any ProgramNode, value: any ProgramNode)]) { self.entries = entries }

  func evaluate(_ frame: inout EvaluationFrame) throws(EvaluationError) -> ExpressionValue {
    try frame.budget.spend(1 + entries.count)
    var values: [(key: ExpressionValue, value: ExpressionValue)] = []
    values.reserveCapacity(entries.count)
    for entry in entries {
      let key = try entry.key.evaluate(&frame)
      if case .string(let text) = key { try frame.budget.spend(bytes: text.utf8.count) }
      values.append((key, try entry.value.evaluate(&frame)))
    }
    return .map(try ExpressionMap(values))
  }
}
