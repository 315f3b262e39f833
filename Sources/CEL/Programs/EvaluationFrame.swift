/// The state of one evaluation.
struct EvaluationFrame {
  let activation: any ExpressionActivation
  var budget: EvaluationBudget
  /// The values of comprehension variables by their numbers.
  var locals: [ExpressionValue]

  init(_ activation: any ExpressionActivation, _ budget: EvaluationBudget, localCount: Int) {
    self.activation = activation
    self.budget = budget
    locals = localCount == 0 ? [] : Array(repeating: .null, count: localCount)
  }
}
