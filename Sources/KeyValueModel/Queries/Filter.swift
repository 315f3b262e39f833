import CEL

/// A condition in CEL that objects of an entity meet or do not (the specification, sections 3 and 8).
package struct Filter: Sendable {
  private let expression: KeyExpression
  /// Stored keys of the object that must have a value for the condition to hold.
  package let equalities: [(key: Int, value: Value)]
  /// Lower and upper bounds that stored keys of the object must observe for the condition to hold.
  package let bounds: [KeyBound]

  /// Compiles `text` for objects of `entity`. Throws if it is not an expression over their keys, or not a condition.
  package init(_ text: String, of entity: Entity, in schema: Schema) throws(KeyExpression.Mistake) {
    expression = try KeyExpression(text, of: entity, in: schema)
    guard expression.type == .attribute(.boolean) || expression.type == .attribute(.json) else {
      throw KeyExpression.Mistake(
        line: 1, column: 1, message: "a filter must be a boolean, not \(expression.type.article)")
    }
    equalities = expression.equalities(of: entity)
    bounds = expression.bounds(of: entity)
  }

  /// The keys that the condition reads of each object.
  package var reads: KeyTree { expression.reads }

  /// True if the condition reads only the object that it is evaluated for, and of that only the keys that it names.
  ///
  /// False if it has any object as a value, since evaluation may read that in ways that do not show beforehand, as in
  /// `[owner, 1][0].name`.
  func staysWithKeys(of entity: Entity, in schema: Schema) -> Bool {
    !expression.root.namesRoot
      && expression.reads.branches.allSatisfy { branch in
        let key = entity.keys[branch.key]
        guard branch.behind.isEmpty, branch.fold == nil, schema.destination(of: key) == nil else { return false }
        guard case .computed = key.kind else { return true }
        return schema.type(of: key)?.innermost != .attribute(.json)
      }
  }

  /// The result of a condition for one object.
  package enum Verdict: Hashable, Sendable {
    /// The object meets the condition.
    case met
    /// The object does not meet the condition.
    case unmet
    /// The evaluation fails for the object, as a comparison by size with null does.
    case failed
  }

  /// Evaluates the condition for an object.
  ///
  /// `cost` is the number of steps that may still be spent, and is reduced by those spent. Throws `malformed-filter` if
  /// it does not suffice.
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

  /// Evaluates the condition for an object, at the expense of the request.
  ///
  /// The steps are taken from the work of the request, which stops if they exceed what is left. Throws
  /// `malformed-filter` if the filter costs too much for one object alone.
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

extension KeyExpression {
  /// The stored keys that the expression compares with a constant, in a way that makes it false for all other values:
  /// `state == 'TX'` or `day == timestamp('2010-03-01T00:00:00Z')`, by itself or joined to other conditions by `&&`.
  fileprivate func equalities(of entity: Entity) -> [(key: Int, value: Value)] {
    Self.equalities(in: root, entity, constant: Self.constant)
  }

  /// Returns the same for a condition in which `constant` gives the value of a node that is the same for all objects,
  /// such as an alternative that never holds.
  static func equalities(
    in node: ExpressionNode, _ entity: Entity, constant: (ExpressionNode) -> ExpressionValue?
  ) -> [(key: Int, value: Value)] {
    switch node.kind {
    case .all(let operands):
      return operands.flatMap { equalities(in: $0, entity, constant: constant) }
    case .any(let operands):
      let open = operands.filter { operand in
        if case .bool(false)? = constant(operand) { false } else { true }
      }
      return open.count == 1 ? equalities(in: open[0], entity, constant: constant) : []
    case .binary(.equal, let left, let right):
      return [equality(left, right, entity, constant) ?? equality(right, left, entity, constant)].compactMap { $0 }
    default: return []
    }
  }

  private static func equality(
    _ name: ExpressionNode, _ other: ExpressionNode, _ entity: Entity, _ constant: (ExpressionNode) -> ExpressionValue?
  ) -> (key: Int, value: Value)? {
    guard let key = key(name, entity), entity.keys[key].storage != nil, let literal = constant(other),
      let value = Value(literal, as: nil)
    else { return nil }
    if value.isNull { return (key, .null) }
    switch entity.keys[key].kind {
    case .attribute(let attribute):
      guard isFound(value, under: attribute.type) else { return nil }
      return (try? Attribute(type: attribute.type).accepting(value)).map { (key, $0) }
    case .toOne:
      guard case .string(let text) = value, let reference = Reference(text) else { return nil }
      return (key, .reference(reference))
    case .toMany, .computed: return nil
    }
  }

  /// The stored keys that the expression compares by size with a constant, in a way that makes it false beyond that:
  /// `salary > 1000`, by itself or joined to other conditions by `&&`. Numbers and strings only.
  fileprivate func bounds(of entity: Entity) -> [KeyBound] { Self.bounds(in: root, entity) }

  private static func bounds(in node: ExpressionNode, _ entity: Entity) -> [KeyBound] {
    switch node.kind {
    case .all(let operands): return operands.flatMap { bounds(in: $0, entity) }
    case .binary(.greater, let left, let right), .binary(.greaterOrEqual, let left, let right):
      return bounds(of: left, atLeast: right, entity)
    case .binary(.less, let left, let right), .binary(.lessOrEqual, let left, let right):
      return bounds(of: right, atLeast: left, entity)
    default: return []
    }
  }

  /// Returns the bound of `greater >= less` if one side is a key and the other a constant.
  private static func bounds(
    of greater: ExpressionNode, atLeast less: ExpressionNode, _ entity: Entity
  ) -> [KeyBound] {
    if let key = boundKey(greater, entity), let value = boundValue(less, of: entity.keys[key]) {
      return [KeyBound(key: key, side: .least, value: value)]
    }
    if let key = boundKey(less, entity), let value = boundValue(greater, of: entity.keys[key]) {
      return [KeyBound(key: key, side: .greatest, value: value)]
    }
    return []
  }

  private static func boundKey(_ node: ExpressionNode, _ entity: Entity) -> Int? {
    key(node, entity).flatMap { entity.keys[$0].storage == nil ? nil : $0 }
  }

  private static func boundValue(_ node: ExpressionNode, of key: Key) -> Value? {
    guard case .attribute(let attribute) = key.kind, let literal = constant(node), let value = Value(literal, as: nil)
    else { return nil }
    switch (attribute.type, value) {
    // Beyond 2^53 the language compares rounded numbers, but the order of values is exact.
    case (.integer, .integer(let number)), (.number, .integer(let number)):
      return number.magnitude < 1 << 53 ? value : nil
    case (.integer, .number(let number)), (.number, .number(let number)):
      return number.magnitude < 9_007_199_254_740_992 ? value : nil
    case (.string, .string): return value
    default: return nil
    }
  }

  /// True if looking up a value finds every value that `==` considers equal to it.
  ///
  /// A lookup keeps the JSON values 1 and 1.0 apart. `==` compares an integer with a double as doubles, and beyond 2^53
  /// one double stands for several integers.
  private static func isFound(_ value: Value, under type: AttributeType) -> Bool {
    switch (type, value) {
    case (.json, .integer), (.json, .number): false
    case (.integer, .number(let number)): number.magnitude < 9_007_199_254_740_992
    default: true
    }
  }

  /// Returns the value of a node that needs no object: a literal, or the moment that a literal names.
  static func constant(_ node: ExpressionNode) -> ExpressionValue? {
    switch node.kind {
    case .literal(let literal): return literal
    case .call("timestamp", target: nil, let arguments) where arguments.count == 1:
      guard case .literal(let literal) = arguments[0].kind else { return nil }
      switch literal {
      case .string(let text): return ExpressionTimestamp(parsing: text).map(ExpressionValue.timestamp)
      case .int(let seconds): return ExpressionTimestamp(seconds: seconds).map(ExpressionValue.timestamp)
      default: return nil
      }
    default: return nil
    }
  }

  /// Returns the index of the key that a node names, as `state` or as `this.state`.
  private static func key(_ node: ExpressionNode, _ entity: Entity) -> Int? {
    switch node.kind {
    case .identifier(let name, _): return entity.indexOfKey(name)
    case .select(let operand, let field):
      guard case .identifier(Expression.rootVariable, _) = operand.kind else { return nil }
      return entity.indexOfKey(field)
    default: return nil
    }
  }
}

extension Result<ExpressionValue, EvaluationError> {
  /// The result for the object.
  fileprivate var verdict: Filter.Verdict {
    switch self {
    case .success(.bool(true)): .met
    case .success: .unmet
    case .failure: .failed
    }
  }

  /// True if the evaluation stopped because it exceeded its cost limit.
  fileprivate var isOverCost: Bool {
    if case .failure(let error) = self { error.kind == .costLimitExceeded } else { false }
  }
}

/// A stored key of an object, and a value that it must not be under, or not over, for a condition to hold.
///
/// For example, `salary > 1000` requires that the salary is not under 1000. A value within the bound need not meet the
/// condition: null is within it, but has no order, so that the condition fails.
package struct KeyBound: Hashable, Sendable {
  /// The direction of a bound.
  package enum Side: Hashable, Sendable {
    /// The key must be the value or more.
    case least
    /// The key must be the value or less.
    case greatest
  }

  /// The index of the key in its entity.
  package let key: Int
  /// The direction of the bound.
  package let side: Side
  /// The value, in the order of `ValueOrder.plain`.
  package let value: Value

  /// False if a value of the key rules out both that the condition holds and that it fails.
  package func allows(_ other: Value) -> Bool {
    guard !other.isNull else { return true }
    return switch side {
    case .least: !ValueOrder.plain.precedes(other, value)
    case .greatest: !ValueOrder.plain.precedes(value, other)
    }
  }
}
