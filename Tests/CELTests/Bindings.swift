
@testable import CEL

/// Variables with their values, whose types are those of the values.
struct Bindings: ExpressionEnvironment, ExpressionActivation {
  private let values: [(name: String, value: ExpressionValue)]

  init(_ values: [(name: String, value: ExpressionValue)] = []) { self.values = values }

  func type(ofVariable name: String) -> ExpressionType? {
    values.first { $0.name == name }.map { Bindings.type($0.value) }
  }

  func index(ofVariable name: String) -> Int? { values.firstIndex { $0.name == name } }

  func type(ofField name: String, inObject object: String) -> ExpressionType? { nil }

  func value(
    ofVariable name: String, index: Int, budget: inout EvaluationBudget
  ) throws(EvaluationError) -> ExpressionValue {
    guard values.indices.contains(index) else { throw EvaluationError(.undeclaredReference, name) }
    return values[index].value
  }

  private static func type(_ value: ExpressionValue) -> ExpressionType {
    switch value {
    case .list: .list(.dyn)
    case .map: .map(.dyn, .dyn)
    case .timestamp: .timestamp
    case .duration: .duration
    default: ExpressionType(literal: value)
    }
  }
}
