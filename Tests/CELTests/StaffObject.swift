
@testable import CEL

/// An object of the tests' model, with its keys in a dictionary.
final class StaffObject: ExpressionObject {
  let typeName: String
  let identity: String
  private let fields: [String: ExpressionValue]

  init(_ typeName: String, _ number: Int, _ fields: [String: ExpressionValue]) {
    self.typeName = typeName
    identity = "\(typeName)/\(number)"
    self.fields = fields
  }

  func field(
    named name: String, index: Int, budget: inout EvaluationBudget
  ) throws(EvaluationError) -> ExpressionValue {
    guard let names = StaffModel.entities[typeName] else { throw EvaluationError(.noSuchKey, name) }
    // Whether the number that was given at the check is that of the key.
    if index >= 0, StaffModel.sortedKeys(typeName)[index] != name { throw EvaluationError(.unavailable, name) }
    guard names[name] != nil else { throw EvaluationError(.noSuchKey, name) }
    return fields[name] ?? .null
  }
}
