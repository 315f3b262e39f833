/// A function of the library.
final class CallNode: ProgramNode {
  private let implementation: FunctionDefinition.Implementation
  private let arguments: [any ProgramNode]

  init(_ function: FunctionDefinition, _ arguments: [any ProgramNode]) {
    (implementation, self.arguments) = (function.implementation, arguments)
  }

  func evaluate(_ frame: inout EvaluationFrame) throws(EvaluationError) -> ExpressionValue {
    try frame.budget.spend()
    var values: [ExpressionValue] = []
    values.reserveCapacity(arguments.count)
    for argument in arguments { values.append(try argument.evaluate(&frame)) }
    return try implementation(values, &frame.budget)
  }
}
