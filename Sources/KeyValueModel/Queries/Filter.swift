import CEL

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

  /// Whether it can come to no object but the one that it is asked of, and uses no more of that than the keys it names.
  /// An object at hand may be looked into in ways that only evaluation shows, as in `[owner, 1][0].name`.
  func staysWithKeys(of entity: Entity, in schema: Schema) -> Bool {
    !expression.root.namesRoot
      && expression.reads.branches.allSatisfy { branch in
        let key = entity.keys[branch.key]
        guard branch.behind.isEmpty, branch.fold == nil, schema.destination(of: key) == nil else { return false }
        guard case .computed = key.kind else { return true }
        return schema.type(of: key)?.innermost != .attribute(.json)
      }
  }

  /// What an object is to the condition.
  package enum Verdict: Hashable, Sendable {
    /// It meets it.
    case met
    /// It does not.
    case unmet
    /// The evaluation fails for it, as a comparison by size with null does.
    case failed
  }

  /// Whether an object meets the condition.
  ///
  /// `cost` is what may still be spent, and is spent from; throws `malformed-filter` where it does not suffice.
  package func verdict(
    on reference: Reference, in reader: some ObjectReader, cost: inout Int
  ) throws(ModelError) -> Verdict {
    guard let record = reader.record(reference) else { return .unmet }
    let limits = ExpressionLimits()
    let allowed = min(cost, limits.cost)
    var budget = EvaluationBudget(cost: allowed, depth: limits.evaluationDepth)
    let result = self.result(for: reference, record, in: reader, budget: &budget)
    cost -= allowed - budget.remainingCost
    if result.isOverCost {
      let limit = allowed < limits.cost ? "request.steps allows" : Self.limitOfOneObject
      throw ModelError(.malformedFilter, "the filter costs more than \(limit)")
    }
    return result.verdict
  }

  /// Whether an object meets the condition.
  ///
  /// What it takes is taken from the work of the request, which stops where that does not suffice; throws
  /// `malformed-filter` where the filter is too much for one object alone.
  package func verdict(on reference: Reference, in state: some ObjectReader) throws(ModelError) -> Verdict {
    guard let record = state.record(reference), let work = state.work else { return .unmet }
    let limits = ExpressionLimits()
    var budget = work.budget(within: limits)
    let granted = budget.remainingCost
    let result = self.result(for: reference, record, in: state, budget: &budget)
    work.settle(budget, granted: granted, within: limits)
    if result.isOverCost, work.stop == nil {
      throw ModelError(.malformedFilter, "the filter costs more than \(Self.limitOfOneObject)")
    }
    return result.verdict
  }

  private static var limitOfOneObject: String { "\(ExpressionLimits().cost) steps for one object" }

  private func result(
    for reference: Reference, _ record: ObjectRecord, in reader: some ObjectReader, budget: inout EvaluationBudget
  ) -> Result<ExpressionValue, EvaluationError> {
    expression.evaluate(reference, record, EvaluationPass(reader: reader), budget: &budget)
  }
}

extension Result<ExpressionValue, EvaluationError> {
  /// What it says of the object.
  fileprivate var verdict: Filter.Verdict {
    switch self {
    case .success(.bool(true)): .met
    case .success: .unmet
    case .failure: .failed
    }
  }

  /// Whether it was not found out, because that costs more than it may.
  fileprivate var isOverCost: Bool {
    if case .failure(let error) = self { error.kind == .costLimitExceeded } else { false }
  }
}
