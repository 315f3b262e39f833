internal import Expressions

extension KeyExpression {
  /// The stored keys that the expression compares with a constant, in a way that makes it false for all other values:
  /// `state == 'TX'` or `day == timestamp('2010-03-01T00:00:00Z')`, by itself or joined to other conditions by `&&`.
  func equalities(of entity: Entity) -> [(key: Int, value: Value)] {
    Self.equalities(in: root, entity)
  }

  private static func equalities(in node: ExpressionNode, _ entity: Entity) -> [(key: Int, value: Value)] {
    switch node.kind {
    case .all(let operands): operands.flatMap { equalities(in: $0, entity) }
    case .binary(.equal, let left, let right):
      [equality(left, right, entity) ?? equality(right, left, entity)].compactMap { $0 }
    default: []
    }
  }

  private static func equality(
    _ name: ExpressionNode, _ constant: ExpressionNode, _ entity: Entity
  ) -> (key: Int, value: Value)? {
    guard let key = key(name, entity), entity.keys[key].storage != nil, let literal = Self.constant(constant),
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

  /// Whether looking a value up finds everything that `==` takes for the same. It tells the JSON values 1 and 1.0 from each other;
  /// and `==` compares an integer with a double as doubles, of which beyond 2^53 one stands for several integers.
  private static func isFound(_ value: Value, under type: AttributeType) -> Bool {
    switch (type, value) {
    case (.json, .integer), (.json, .number): false
    case (.integer, .number(let number)): number.magnitude < 9_007_199_254_740_992
    default: true
    }
  }

  /// What a node is without any object: a literal, or the moment that one names.
  private static func constant(_ node: ExpressionNode) -> ExpressionValue? {
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

  /// The key that a node names: `state`, or `this.state`.
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
