extension ExpressionValue {
  /// Spends one for each element within lists and maps that are at hand, so that the text of a value is no longer than
  /// what the evaluation may cost. Throws when the budget is spent, or when the values are nested too deep.
  func spendSize(_ budget: inout EvaluationBudget, depth: Int = 0) throws(EvaluationError) {
    let parts: [ExpressionValue]
    switch self {
    case .list(let elements): parts = elements
    case .map(let map): parts = map.values
    case .string(let text) where depth > 0: return try budget.spend(text.utf8.count / EvaluationBudget.bytesPerUnit)
    default: return
    }
    guard depth < ExpressionValue.nestingLimit else { throw .depthLimitExceeded }
    try budget.spend(parts.count)
    for part in parts { try part.spendSize(&budget, depth: depth + 1) }
  }
}
