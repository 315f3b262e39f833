/// `min` and `max`.
struct ExtremeFold: ListFold {
  /// -1 for the least, 1 for the greatest.
  let sign: Int
  private var best: ExpressionValue?

  init(sign: Int) { self.sign = sign }

  mutating func add(_ element: ExpressionValue, _ budget: inout EvaluationBudget) throws(EvaluationError) {
    guard !element.isNull else { return }
    guard let best else {
      // Compared with itself so that a list of one value of a type without an order is a fault too.
      _ = try element.aggregateOrder(to: element, budget: &budget)
      self.best = element
      return
    }
    if try element.aggregateOrder(to: best, budget: &budget) * sign > 0 { self.best = element }
  }

  func value() throws(EvaluationError) -> ExpressionValue { best ?? .null }
}
