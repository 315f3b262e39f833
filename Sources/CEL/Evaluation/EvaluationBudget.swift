/// What an evaluation may still spend. One budget is passed on through all the expressions that are evaluated for one
/// another, so that the total is bounded.
///
/// A step (a node of the tree that is evaluated), an element of a list that is visited or copied, a step of a regular
/// expression's machine and each started `bytesPerUnit` bytes of a string that is made, compared or searched cost one.
package struct EvaluationBudget: Sendable, Equatable {
  /// How many bytes of a string cost as much as one step.
  package static let bytesPerUnit = 8

  /// The cost that may still be spent, never below 0.
  package internal(set) var remainingCost: Int
  /// How many levels of evaluation may still be nested.
  package internal(set) var remainingDepth: Int

  /// A budget of its own numbers; negative ones count as 0.
  package init(cost: Int, depth: Int) {
    remainingCost = max(cost, 0)
    remainingDepth = max(depth, 0)
  }

  /// The whole budget that `limits` allow.
  package init(_ limits: ExpressionLimits) {
    self.init(cost: limits.cost, depth: limits.evaluationDepth)
  }

  /// Spends `cost`, or stops with `costLimitExceeded` and leaves nothing when less than that remains.
  @inline(__always)
  package mutating func spend(_ cost: Int = 1) throws(EvaluationError) {
    guard remainingCost >= cost else {
      remainingCost = 0
      throw .costLimitExceeded
    }
    remainingCost -= cost
  }

  /// Spends what `bytes` bytes of text cost.
  @inline(__always)
  package mutating func spend(bytes: Int) throws(EvaluationError) {
    try spend(bytes / EvaluationBudget.bytesPerUnit + 1)
  }

  /// Takes `levels` of nesting, or stops with `depthLimitExceeded`; `leave` gives them back.
  package mutating func enter(levels: Int) throws(EvaluationError) {
    guard remainingDepth >= levels else { throw .depthLimitExceeded }
    remainingDepth -= levels
  }

  /// Gives back levels that `enter` took.
  package mutating func leave(levels: Int) { remainingDepth += levels }
}
