/// The value of a collection function, which the caller gives.
final class CollectionFunctionNode: ProgramNode {
  private let index: Int

  init(_ index: Int) { self.index = index }

  func evaluate(_ frame: inout EvaluationFrame) throws(EvaluationError) -> ExpressionValue {
    try frame.budget.spend()
    return try frame.activation.value(ofCollectionFunction: index, budget: &frame.budget)
  }
}
