/// The values that a function is called with. What is not of the type that is asked for throws `noSuchOverload`: types
/// are not always known before evaluation.
struct FunctionArguments {
  let name: String
  let values: [ExpressionValue]

  var count: Int { values.count }

  subscript(index: Int) -> ExpressionValue { values[index] }

  /// Says that the function does not take these values.
  var mismatch: EvaluationError { .noOverload(function: name, values) }

  func string(_ index: Int) throws(EvaluationError) -> String {
    guard case .string(let text) = values[index] else { throw mismatch }
    return text
  }

  func list(_ index: Int) throws(EvaluationError) -> ExpressionList {
    guard let list = values[index].asList else { throw mismatch }
    return list
  }

  /// The argument at `index`, nil when it is not given.
  func optionalInt(_ index: Int) throws(EvaluationError) -> Int64? { try index < count ? int(index) : nil }

  func int(_ index: Int) throws(EvaluationError) -> Int64 {
    guard case .int(let number) = values[index] else { throw mismatch }
    return number
  }
}
