/// What a comprehension visits, and where its variable is kept.
struct ElementRange: Sendable {
  let operand: any ProgramNode
  let variable: Int

  /// The elements: those of a list, or the keys of a map. Throws when the range is neither.
  func elements(_ frame: inout EvaluationFrame, _ macro: String) throws(EvaluationError) -> ExpressionList {
    try frame.budget.spend()
    let range = try operand.evaluate(&frame)
    if case .map(let map) = range { return .elements(map.keys) }
    guard let list = range.asList else { throw .noOverload(function: macro, [range]) }
    return list
  }

  /// Binds the variable to the element at `index`.
  @inline(__always)
  func bind(
    _ elements: ExpressionList, _ index: Int, _ frame: inout EvaluationFrame
  ) throws(EvaluationError) {
    try frame.budget.spend()
    frame.locals[variable] = try elements.element(at: index)
  }
}
