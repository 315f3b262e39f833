extension Checker {
  /// The types that arithmetic takes, and what it gives. Lists have a rule of their own.
  private static let arithmetic: [BinaryOperator: [FunctionDefinition.Overload]] = {
    func same(_ types: [ExpressionType]) -> [FunctionDefinition.Overload] {
      types.map { FunctionDefinition.Overload(arguments: [$0, $0], result: $0) }
    }
    func overload(_ left: ExpressionType, _ right: ExpressionType, _ result: ExpressionType)
      -> FunctionDefinition.Overload
    { FunctionDefinition.Overload(arguments: [left, right], result: result) }
    let times = [overload(.timestamp, .duration, .timestamp), overload(.duration, .duration, .duration)]
    return [
      .add: same([.int, .uint, .double, .string, .bytes]) + times
        + [overload(.duration, .timestamp, .timestamp), overload(.list(.dyn), .list(.dyn), .list(.dyn))],
      .subtract: same([.int, .uint, .double]) + times + [overload(.timestamp, .timestamp, .duration)],
      .multiply: same([.int, .uint, .double]),
      .divide: same([.int, .uint, .double]),
      .modulo: same([.int, .uint]),
    ]
  }()

  /// `left sign right`.
  mutating func binary(
    _ node: ExpressionNode, _ sign: BinaryOperator, _ left: ExpressionNode, _ right: ExpressionNode
  ) -> ExpressionType {
    let (first, second) = (type(of: left), type(of: right))
    let mismatch = "no such overload: \(first) \(sign.rawValue) \(second)\(Self.hint(sign, first, second))"
    switch sign {
    case .equal, .notEqual:
      if first.isComparable(with: second) { checkLiterals(sign, left, right) } else { _ = fault(mismatch, node) }
      return .bool
    case .less, .lessOrEqual, .greater, .greaterOrEqual:
      if first.isOrdered(with: second) { checkLiterals(sign, left, right) } else { _ = fault(mismatch, node) }
      return .bool
    case .contained:
      if !isContainer(second, of: first) { _ = fault(mismatch, node) }
      return .bool
    case .add, .subtract, .multiply, .divide, .modulo:
      if sign == .add, case .list(let one) = first, case .list(let other) = second {
        return .list(one.joined(with: other) ?? .dyn)
      }
      return Checker.result(Checker.arithmetic[sign] ?? [], [first, second]) ?? fault(mismatch, node)
    }
  }

  private func isContainer(_ container: ExpressionType, of element: ExpressionType) -> Bool {
    switch container {
    case .list(let type), .map(let type, _): element.isComparable(with: type)
    case .dyn: true
    default: false
    }
  }

  /// The result of the overload that takes `arguments`: `dyn` when more than one might, nil when none does.
  static func result(_ overloads: [FunctionDefinition.Overload], _ arguments: [ExpressionType]) -> ExpressionType? {
    if let exact = overloads.first(where: { $0.arguments == arguments }) { return exact.result }
    let fitting = overloads.filter { overload in
      overload.arguments.count == arguments.count
        && zip(arguments, overload.arguments).allSatisfy { $0.isAssignable(to: $1) }
    }
    guard let first = fitting.first else { return nil }
    return fitting.allSatisfy { $0.result == first.result } ? first.result : .dyn
  }

  /// `!operand` or `-operand`.
  mutating func unary(_ node: ExpressionNode, _ sign: UnaryOperator, _ operand: ExpressionNode) -> ExpressionType {
    let type = type(of: operand)
    switch (sign, type) {
    case (_, .dyn): return sign == .not ? .bool : .dyn
    case (.not, .bool), (.negate, .int), (.negate, .double), (.negate, .duration): return type
    default: return fault("no such overload: \(sign.rawValue)\(type)", node)
    }
  }

  /// Operands of `&&` or `||`.
  mutating func logical(_ node: ExpressionNode, _ sign: String, _ operands: [ExpressionNode]) -> ExpressionType {
    for operand in operands {
      let type = type(of: operand)
      if !type.isAssignable(to: .bool) { _ = fault("an operand of \(sign) must be a bool, not \(type)", operand) }
    }
    return .bool
  }

  /// `condition ? first : second`.
  mutating func conditional(
    _ node: ExpressionNode, _ condition: ExpressionNode, _ first: ExpressionNode, _ second: ExpressionNode
  ) -> ExpressionType {
    let types = [condition, first, second].map { type(of: $0) }
    if !types[0].isAssignable(to: .bool) {
      _ = fault("the condition of ?: must be a bool, not \(types[0])", condition)
    }
    return types[1].joined(with: types[2])
      ?? fault("no such overload: \(types[0]) ? \(types[1]) : \(types[2])", node)
  }
}
