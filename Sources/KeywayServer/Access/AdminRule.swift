import CEL
import KeyValueModel

/// An expression of a setting that says which identities may do something beside what rules say.
struct AdminRule: Sendable {
  private static let limits = ExpressionLimits()

  private struct Environment: ExpressionEnvironment {
    func type(ofVariable name: String) -> ExpressionType? { name == "identity" ? .dyn : nil }
    func type(ofField name: String, inObject object: String) -> ExpressionType? { nil }
  }

  private struct Activation: ExpressionActivation {
    let claims: JSONObject

    func value(
      ofVariable name: String, index: Int, budget: inout EvaluationBudget
    ) throws(EvaluationError) -> ExpressionValue {
      ExpressionValue(json: .object(claims))
    }
  }

  private let expression: CheckedExpression

  /// Reads the expression of a setting. Throws an `AccessError` if it is not a condition over `identity`.
  init(_ text: String, of setting: String) throws(AccessError) {
    do {
      expression = try Expression(parsing: text, limits: Self.limits).checked(in: Environment())
    } catch {
      throw AccessError("\(setting): \(error)")
    }
    guard expression.type == .bool || expression.type == .dyn else {
      throw AccessError("\(setting) is not a condition: its values are \(expression.type)")
    }
  }

  /// Whether these claims meet it; an error is no.
  func holds(of claims: JSONObject) -> Bool {
    var budget = EvaluationBudget(Self.limits)
    guard case .success(.bool(true)) = expression.evaluate(Activation(claims: claims), budget: &budget) else {
      return false
    }
    return true
  }
}
