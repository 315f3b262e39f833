/// An object of the caller's that an expression reads by its keys. Two are equal when their identities are.
package protocol ExpressionObject: AnyObject, Sendable {
  /// The name of its entity.
  var typeName: String { get }
  /// Its reference text, such as `Department/3`: what `==` and `in` compare, also with a string.
  var identity: String { get }
  /// The value of a key. `index` is what the environment gave for the key when the expression was checked, -1 when it
  /// gave none or the type was not known. What it costs to compute is spent from `budget`. Throws `noSuchKey` when
  /// there is no such key, or whatever made it impossible to compute the value.
  func field(
    named name: String, index: Int, budget: inout EvaluationBudget
  ) throws(EvaluationError) -> ExpressionValue
  /// What `has(object.name)` says: whether the key has a value other than null. Throws as `field` does.
  func hasField(named name: String, index: Int, budget: inout EvaluationBudget) throws(EvaluationError) -> Bool
}

extension ExpressionObject {
  /// Asks for the value.
  package func hasField(
    named name: String, index: Int, budget: inout EvaluationBudget
  ) throws(EvaluationError) -> Bool {
    try !field(named: name, index: index, budget: &budget).isNull
  }
}
