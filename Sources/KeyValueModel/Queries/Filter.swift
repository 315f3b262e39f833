import Expressions

/// A condition in CEL that objects of an entity meet or do not (the specification, sections 3 and 8).
package struct Filter: Sendable {
  /// The condition as it was written.
  package let text: String
  private let expression: KeyExpression
  /// Stored keys of the object that must have a value for the condition to hold.
  package let equalities: [(key: Int, value: Value)]
  /// Stored keys of the object that must not be under or over a value for the condition to hold.
  package let bounds: [KeyBound]

  /// Compiles `text` for objects of `entity`. Throws where it is no expression over its keys, or no condition.
  package init(_ text: String, of entity: Entity, in schema: Schema) throws(KeyExpression.Mistake) {
    self.text = text
    expression = try KeyExpression(text, of: entity, in: schema)
    guard expression.type == .attribute(.boolean) || expression.type == .attribute(.json) else {
      throw KeyExpression.Mistake(
        line: 1, column: 1, message: "a filter is true or false, and this is \(expression.type.article)")
    }
    equalities = expression.equalities(of: entity)
    bounds = expression.bounds(of: entity)
  }

  /// What it reads of each object.
  package var reads: KeyTree { expression.reads }

  /// Whether an object meets the condition. One for which it fails, as a comparison with null does, does not.
  ///
  /// `cost` is what may still be spent, and is spent from; throws `malformed-filter` where it does not suffice.
  package func isMet(
    by reference: Reference, in reader: some ObjectReader, cost: inout Int
  ) throws(ModelError) -> Bool {
    guard let record = reader.record(reference) else { return false }
    let limits = ExpressionLimits()
    let allowed = min(cost, limits.cost)
    var budget = EvaluationBudget(cost: allowed, depth: limits.evaluationDepth)
    let pass = EvaluationPass(reader: reader, latest: 0)
    let result = expression.evaluate(reference, record, pass, budget: &budget)
    cost -= allowed - budget.remainingCost
    if case .failure(let error) = result, error.kind == .costLimitExceeded {
      let limit = allowed < limits.cost ? "fetch.filterCost allows" : "\(limits.cost) steps for one object"
      throw ModelError(.malformedFilter, "the filter costs more than \(limit)")
    }
    if case .success(.bool(true)) = result { return true }
    return false
  }
}
