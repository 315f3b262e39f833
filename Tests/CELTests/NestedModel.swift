@testable import CEL

/// A model in which `open` is an expression that is evaluated inside the one that reads it, as computed keys are, until
/// the depth limit is reached.
struct NestedModel: ExpressionEnvironment, ExpressionActivation {
  private let model: StaffModel
  private let inner: CheckedExpression?

  /// The model, with expressions for `open`.
  init(_ model: StaffModel) {
    self.model = model
    inner = try? Expression(parsing: String(repeating: "!", count: 100) + "open").checked(in: model)
  }

  func type(ofVariable name: String) -> ExpressionType? { model.type(ofVariable: name) }

  func type(ofField name: String, inObject object: String) -> ExpressionType? {
    model.type(ofField: name, inObject: object)
  }

  func value(
    ofVariable name: String, index: Int, budget: inout EvaluationBudget
  ) throws(EvaluationError) -> ExpressionValue {
    if let inner, name == "open" {
      do throws(EvaluationError) {
        return try inner.evaluate(self, budget: &budget).get()
      } catch {
        return .bool(true)
      }
    }
    return try model.value(ofVariable: name, index: index, budget: &budget)
  }

  func outcome(of text: String) -> String {
    do {
      let checked = try Expression(parsing: text).checked(in: self)
      var budget = EvaluationBudget(ExpressionLimits())
      return Canonical.text(checked.evaluate(self, budget: &budget))
    } catch {
      return "\(error)"
    }
  }
}
