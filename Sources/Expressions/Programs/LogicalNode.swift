/// Operands joined by `&&` or by `||`: one that decides makes errors of the others disappear, whatever their order
/// (CEL language definition, Logical Operators).
final class LogicalNode: ProgramNode {
  private let operands: [any ProgramNode]
  /// The value of an operand that decides: false for `&&`, true for `||`.
  private let decisive: Bool

  init(_ operands: [any ProgramNode], decisive: Bool) { (self.operands, self.decisive) = (operands, decisive) }

  func evaluate(_ frame: inout EvaluationFrame) throws(EvaluationError) -> ExpressionValue {
    try frame.budget.spend()
    var absorbed = AbsorbedError()
    for operand in operands {
      if try absorbed.decides(operand, decisive, &frame) { return .bool(decisive) }
    }
    try absorbed.rethrow()
    return .bool(!decisive)
  }
}
