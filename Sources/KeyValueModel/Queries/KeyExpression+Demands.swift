import CEL

extension KeyExpression {
  /// The stored keys that the expression compares with a constant, in a way that makes it false for all other values:
  /// `state == 'TX'` or `day == timestamp('2010-03-01T00:00:00Z')`, by itself or joined to other conditions by `&&`.
  func equalities(of entity: Entity) -> [(key: Int, value: Value)] {
    Self.equalities(in: root, entity, constant: Self.constant)
  }

  /// The same of a condition in which `constant` gives the value of what is the same for all objects, be it a part of
  /// an alternative that never holds.
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
  func bounds(of entity: Entity) -> [KeyBound] { Self.bounds(in: root, entity) }

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

  /// The bound of `greater >= less`, where one of them is a key and the other a constant.
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
    // Beyond 2^53 the language compares what it rounds, and the order of values does not.
    case (.integer, .integer(let number)), (.number, .integer(let number)):
      return number.magnitude < 1 << 53 ? value : nil
    case (.integer, .number(let number)), (.number, .number(let number)):
      return number.magnitude < 9_007_199_254_740_992 ? value : nil
    case (.string, .string): return value
    default: return nil
    }
  }

  /// Whether looking a value up finds everything that `==` takes for the same. It keeps the JSON values 1 and 1.0
  /// apart; and `==` compares an integer with a double as doubles, of which beyond 2^53 one stands for several
  /// integers.
  private static func isFound(_ value: Value, under type: AttributeType) -> Bool {
    switch (type, value) {
    case (.json, .integer), (.json, .number): false
    case (.integer, .number(let number)): number.magnitude < 9_007_199_254_740_992
    default: true
    }
  }

  /// What a node is without any object: a literal, or the moment that one names.
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
