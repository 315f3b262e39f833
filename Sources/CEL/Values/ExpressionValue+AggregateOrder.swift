extension ExpressionValue {
  /// Below 0, 0 or above 0: the total order of the values that `min` and `max` take, which are numbers, strings,
  /// timestamps and durations. Equal numbers of different types are ordered int, uint, double, so that the least of a
  /// list does not depend on its order. Throws for other values, for two of different kinds, and for NaN.
  package func aggregateOrder(
    to other: ExpressionValue, budget: inout EvaluationBudget
  ) throws(EvaluationError) -> Int {
    switch (self, other) {
    case (.string, .string), (.timestamp, .timestamp), (.duration, .duration): break
    default:
      guard let rank = numberRank, let otherRank = other.numberRank else {
        throw .noOverload("and in min() or max()", self, other)
      }
      guard let order = order(comparedAsNumberWith: other) else { throw .invalid("NaN has no order in min() or max()") }
      return order == 0 ? rank - otherRank : order
    }
    return try order(to: other, "<", &budget) ?? 0
  }

  private var numberRank: Int? {
    switch self {
    case .int: 0
    case .uint: 1
    case .double: 2
    default: nil
    }
  }
}
