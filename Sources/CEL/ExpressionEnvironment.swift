/// The names that an expression may use, and their types.
package protocol ExpressionEnvironment {
  /// The type of the variable `name`, nil when there is none. A name may hold dots: `a.b.c` is looked up as a variable
  /// `a.b.c` first, then as `c` of `a.b`, then as `b.c` of `a` (CEL language definition, Name Resolution).
  func type(ofVariable name: String) -> ExpressionType?
  /// A number for the variable that evaluation asks for it with, nil to be asked by name.
  func index(ofVariable name: String) -> Int?
  /// The type of the key `name` of the entity `object`, nil when the entity has no such key.
  func type(ofField name: String, inObject object: String) -> ExpressionType?
  /// A number for the key that evaluation asks for it with, nil to be asked by name.
  func index(ofField name: String, inObject object: String) -> Int?
  /// The names of variables, for advice on a misspelt one.
  var variableNames: [String] { get }
  /// The names of the keys of an entity, for advice on a misspelt one.
  func fieldNames(inObject object: String) -> [String]
  /// Why a comparison with a literal of a type that it may be compared with can never hold; nil where it can. With
  /// `isEquality` it is `==` or `!=`, otherwise one of order.
  func mistake(comparing operand: ComparedValue, with literal: ExpressionValue, isEquality: Bool) -> String?
  /// Whether `timestamp("…")` that names no moment is a fault of the text, and not left to evaluation.
  var refusesBadTimestamps: Bool { get }
}

extension ExpressionEnvironment {
  /// None: by name.
  package func index(ofVariable name: String) -> Int? { nil }
  /// None: by name.
  package func index(ofField name: String, inObject object: String) -> Int? { nil }
  /// None: no advice.
  package var variableNames: [String] { [] }
  /// None: no advice.
  package func fieldNames(inObject object: String) -> [String] { [] }
  /// None: nothing is known but types.
  package func mistake(
    comparing operand: ComparedValue, with literal: ExpressionValue, isEquality: Bool
  ) -> String? { nil }
  /// No: evaluation fails.
  package var refusesBadTimestamps: Bool { false }
}

/// What stands on the other side of a comparison with a literal, as far as more than its type is known of it.
package enum ComparedValue: Sendable {
  /// A variable of the environment.
  case variable(String)
  /// A key of an object of the entity.
  case field(String, inObject: String)
  /// A member of a variable of the environment.
  case memberOfVariable(String)
  /// A member of a key of an object of the entity.
  case memberOfField(String, inObject: String)
  /// An object of the entity.
  case object(String)
  /// A whole number that is neither; not a negative one where it is no `int` but a `uint`.
  case whole(isSigned: Bool)
}

/// What gives an expression the values of its variables while it is evaluated.
package protocol ExpressionActivation: Sendable {
  /// The value of a variable; `index` is what the environment gave for it, else -1. What it costs to compute is spent
  /// from `budget`. Throws `undeclaredReference` when there is none, or whatever made it impossible to compute it.
  func value(
    ofVariable name: String, index: Int, budget: inout EvaluationBudget
  ) throws(EvaluationError) -> ExpressionValue
  /// The value of the collection function with this number, see `CheckedExpression.extractingCollectionFunctions`.
  func value(
    ofCollectionFunction index: Int, budget: inout EvaluationBudget
  ) throws(EvaluationError) -> ExpressionValue
}

extension ExpressionActivation {
  /// There are none: for expressions from which nothing was extracted.
  package func value(
    ofCollectionFunction index: Int, budget: inout EvaluationBudget
  ) throws(EvaluationError) -> ExpressionValue {
    throw EvaluationError(.unavailable, "collection function \(index) is not available")
  }
}
