/// `map` or `filter`.
final class TransformNode: ProgramNode {
  private let range: ElementRange
  /// The condition on elements, if there is one.
  private let predicate: (any ProgramNode)?
  /// What each element becomes; nil for itself.
  private let transform: (any ProgramNode)?

  init(_ range: ElementRange, _ predicate: (any ProgramNode)?, _ transform: (any ProgramNode)?) {
    (self.range, self.predicate, self.transform) = (range, predicate, transform)
  }

  func evaluate(_ frame: inout EvaluationFrame) throws(EvaluationError) -> ExpressionValue {
    let elements = try range.elements(&frame, transform == nil ? "filter" : "map")
    var results: [ExpressionValue] = []
    for index in 0..<elements.count {
      try range.bind(elements, index, &frame)
      if let predicate {
        let value = try predicate.evaluate(&frame)
        guard case .bool(let flag) = value else { throw .notBool(value) }
        guard flag else { continue }
      }
      results.append(try transform?.evaluate(&frame) ?? frame.locals[range.variable])
    }
    return .list(results)
  }
}
