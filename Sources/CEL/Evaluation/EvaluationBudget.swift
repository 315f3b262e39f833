/// The remaining budget of an evaluation. One budget is passed on through all the expressions that are evaluated for
/// one another, so that the total is bounded.
///
/// A step (a node of the tree that is evaluated), an element of a list that is visited or copied, a step of a regular
/// expression's machine and each started `bytesPerUnit` bytes of a string that is made, compared or searched cost one.
package struct EvaluationBudget: Sendable, Equatable {
  /// The number of bytes of a string that cost as much as one step.
  package static let bytesPerUnit = 8

  /// The cost that may still be spent, never below 0.
  package internal(set) var remainingCost: Int
  /// The number of levels of evaluation that may still be nested.
  package internal(set) var remainingDepth: Int

  /// Creates a budget of these amounts; negative ones count as 0.
  package init(cost: Int, depth: Int) {
    remainingCost = max(cost, 0)
    remainingDepth = max(depth, 0)
  }

  /// Creates the full budget that `limits` allow.
  package init(_ limits: ExpressionLimits) {
    self.init(cost: limits.cost, depth: limits.evaluationDepth)
  }

  /// Spends `cost`. Throws `costLimitExceeded` and leaves nothing if less than that remains.
  @inline(__always)
  package mutating func spend(_ cost: Int = 1) throws(EvaluationError) {
    guard remainingCost >= cost else {
      remainingCost = 0
      throw .costLimitExceeded
    }
    remainingCost -= cost
  }

  /// Spends the cost of `bytes` bytes of text.
  @inline(__always)
  package mutating func spend(bytes: Int) throws(EvaluationError) {
    try spend(bytes / EvaluationBudget.bytesPerUnit + 1)
  }

  /// Takes `levels` of nesting, or throws `depthLimitExceeded`; `leave` returns them.
  package mutating func enter(levels: Int) throws(EvaluationError) {
    guard remainingDepth >= levels else { throw .depthLimitExceeded }
    remainingDepth -= levels
  }

  /// Returns levels that `enter` took.
  package mutating func leave(levels: Int) { remainingDepth += levels }
}
