/// The names that an expression may use, and their types.
package protocol ExpressionEnvironment {
  /// Returns the type of the variable `name`; nil if there is none. A name may contain dots: `a.b.c` is looked up as a
  /// variable `a.b.c` first, then as `c` of `a.b`, then as `b.c` of `a` (CEL language definition, Name Resolution).
  func type(ofVariable name: String) -> ExpressionType?
  /// Returns the number by which evaluation asks for the variable; nil to be asked by name.
  func index(ofVariable name: String) -> Int?
  /// Returns the type of the key `name` of the entity `object`; nil if the entity has no such key.
  func type(ofField name: String, inObject object: String) -> ExpressionType?
  /// Returns the number by which evaluation asks for the key; nil to be asked by name.
  func index(ofField name: String, inObject object: String) -> Int?
  /// The names of variables, for advice on a misspelt one.
  var variableNames: [String] { get }
  /// Returns the names of the keys of an entity, for advice on a misspelt one.
  func fieldNames(inObject object: String) -> [String]
  /// Returns the reason why a comparison of `operand` with a literal of a comparable type can never hold; nil if it
  /// can. With `isEquality` it is `==` or `!=`, otherwise one of order.
  func mistake(comparing operand: ComparedValue, with literal: ExpressionValue, isEquality: Bool) -> String?
  /// True if `timestamp("…")` that does not name an instant is a fault of the text; false if it is left to evaluation.
  var refusesBadTimestamps: Bool { get }
}

extension ExpressionEnvironment {
  /// Returns nil: evaluation asks by name.
  package func index(ofVariable name: String) -> Int? { nil }
  /// Returns nil: evaluation asks by name.
  package func index(ofField name: String, inObject object: String) -> Int? { nil }
  /// Empty: there is no advice.
  package var variableNames: [String] { [] }
  /// Empty: there is no advice.
  package func fieldNames(inObject object: String) -> [String] { [] }
  /// Returns nil: only types are known.
  package func mistake(
    comparing operand: ComparedValue, with literal: ExpressionValue, isEquality: Bool
  ) -> String? { nil }
  /// False: evaluation fails.
  package var refusesBadTimestamps: Bool { false }
}

/// The operand that is compared with a literal, if more than its type is known.
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
  /// A whole number that is none of these; not a negative one if it is a `uint` and not an `int`.
  case whole(isSigned: Bool)
}

/// The source of the values of an expression's variables during its evaluation.
package protocol ExpressionActivation: Sendable {
  /// Returns the value of a variable; `index` is the number that the environment gave for it, or -1. The cost of the
  /// computation is spent from `budget`. Throws `undeclaredReference` if there is none, or the error that prevented the
  /// computation.
  func value(
    ofVariable name: String, index: Int, budget: inout EvaluationBudget
  ) throws(EvaluationError) -> ExpressionValue
  /// Returns the value of the collection function with this number, see
  /// `CheckedExpression.extractingCollectionFunctions`.
  func value(
    ofCollectionFunction index: Int, budget: inout EvaluationBudget
  ) throws(EvaluationError) -> ExpressionValue
}

extension ExpressionActivation {
  /// Throws `unavailable`: for expressions from which nothing was extracted.
  package func value(
    ofCollectionFunction index: Int, budget: inout EvaluationBudget
  ) throws(EvaluationError) -> ExpressionValue {
    throw EvaluationError(.unavailable, "collection function \(index) is not available")
  }
}
