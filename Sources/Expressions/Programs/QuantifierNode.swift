/// `all` or `exists`: an element that decides makes errors of the others disappear (CEL language definition, Macros).
final class QuantifierNode: ProgramNode {
  private let range: ElementRange
  private let predicate: any ProgramNode
  /// The value of the predicate that decides: false for `all`, true for `exists`.
  private let decisive: Bool

  init(_ range: ElementRange, _ predicate: any ProgramNode, decisive: Bool) {
    (self.range, self.predicate, self.decisive) = (range, predicate, decisive)
  }

  func evaluate(_ frame: inout EvaluationFrame) throws(EvaluationError) -> ExpressionValue {
    let elements = try range.elements(&frame, decisive ? "exists" : "all")
    var absorbed = AbsorbedError()
    for index in 0..<elements.count {
      try range.bind(elements, index, &frame)
      if try absorbed.decides(predicate, decisive, &frame) { return .bool(decisive) }
    }
    try absorbed.rethrow()
    return .bool(!decisive)
  }
}
