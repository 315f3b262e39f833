/// A function of the library under one name, with or without a receiver, which is its first argument.
struct FunctionDefinition: Sendable {
  /// Types of arguments and the type of the value for them.
  struct Overload: Sendable {
    let arguments: [ExpressionType]
    let result: ExpressionType
  }

  /// What gives the value: it is called with one value for each argument.
  typealias Implementation =
    @Sendable (_ arguments: FunctionArguments, _ budget: inout EvaluationBudget) throws(EvaluationError)
    -> ExpressionValue

  let name: String
  let overloads: [Overload]
  let implementation: Implementation

  init(_ name: String, _ overloads: [([ExpressionType], ExpressionType)], _ implementation: @escaping Implementation) {
    self.name = name
    self.overloads = overloads.map { Overload(arguments: $0.0, result: $0.1) }
    self.implementation = implementation
  }
}
