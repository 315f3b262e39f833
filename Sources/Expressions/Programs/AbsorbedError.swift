/// The first error of operands of which another one may decide.
struct AbsorbedError {
  private var error: EvaluationError?

  /// Whether the value of `operand` is `decisive`. An error is kept, and so is a value that is not a bool; one that
  /// ends the evaluation is thrown.
  mutating func decides(
    _ operand: any ProgramNode, _ decisive: Bool, _ frame: inout EvaluationFrame
  ) throws(EvaluationError) -> Bool {
    do throws(EvaluationError) {
      let value = try operand.evaluate(&frame)
      if case .bool(let flag) = value { return flag == decisive }
      if error == nil { error = .notBool(value) }
    } catch {
      if error.isLimit { throw error }
      if self.error == nil { self.error = error }
    }
    return false
  }

  /// Throws the error that was kept, if there was any.
  func rethrow() throws(EvaluationError) {
    if let error { throw error }
  }
}
