import Expressions
import KeyValueModel

/// The expression that says who may do everything.
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

  /// Throws an `AccessError` for what is no condition over `identity`.
  init(_ text: String) throws(AccessError) {
    do {
      expression = try Expression(parsing: text, limits: Self.limits).checked(in: Environment())
    } catch {
      throw AccessError("access.admin: \(error)")
    }
    guard expression.type == .bool || expression.type == .dyn else {
      throw AccessError("access.admin is no condition: its values are \(expression.type)")
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
