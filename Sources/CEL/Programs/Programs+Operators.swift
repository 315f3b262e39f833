extension Programs {
  /// `!operand` or `-operand`.
  static func unary(_ sign: UnaryOperator, _ operand: @escaping Program) -> Program {
    { (frame) throws(EvaluationError) in
      try frame.budget.spend()
      let value = try operand(&frame)
      switch (sign, value) {
      case (.not, .bool(let flag)): return .bool(!flag)
      case (.negate, .double(let number)): return .double(-number)
      case (.negate, .duration(let duration)): return .duration(try duration.negated())
      case (.negate, .int(let number)):
        guard number != .min else { throw .overflow("int") }
        return .int(-number)
      default: throw EvaluationError(.noSuchOverload, "no such overload: \(sign.rawValue)\(value.typeName)")
      }
    }
  }

  /// `left sign right`.
  static func binary(_ sign: BinaryOperator, _ left: @escaping Program, _ right: @escaping Program) -> Program {
    switch sign {
    case .add, .subtract, .multiply, .divide, .modulo: arithmetic(sign, left, right)
    case .equal, .notEqual: equality(left, right, isNegated: sign == .notEqual)
    case .less, .lessOrEqual, .greater, .greaterOrEqual: order(sign, left, right)
    case .contained: containment(left, right)
    }
  }

  private static func arithmetic(
    _ sign: BinaryOperator, _ left: @escaping Program, _ right: @escaping Program
  ) -> Program {
    { (frame) throws(EvaluationError) in
      try frame.budget.spend()
      switch (try left(&frame), try right(&frame)) {
      case (.double(let left), .double(let right)): return .double(try Arithmetic.doubles(sign, left, right))
      case (.int(let left), .int(let right)): return .int(try Arithmetic.integers(sign, left, right, "int"))
      case (.uint(let left), .uint(let right)): return .uint(try Arithmetic.integers(sign, left, right, "uint"))
      case (let left, let right): return try Arithmetic.others(sign, left, right, &frame.budget)
      }
    }
  }

  private static func equality(
    _ left: @escaping Program, _ right: @escaping Program, isNegated: Bool
  ) -> Program {
    { (frame) throws(EvaluationError) in
      try frame.budget.spend()
      let left = try left(&frame)
      let right = try right(&frame)
      return .bool(try left.isEqual(to: right, &frame.budget) != isNegated)
    }
  }

  private static func order(
    _ sign: BinaryOperator, _ left: @escaping Program, _ right: @escaping Program
  ) -> Program {
    { (frame) throws(EvaluationError) in
      try frame.budget.spend()
      let left = try left(&frame)
      let right = try right(&frame)
      guard let order = try left.order(to: right, sign.rawValue, &frame.budget) else { return .bool(false) }
      switch sign {
      case .less: return .bool(order < 0)
      case .lessOrEqual: return .bool(order <= 0)
      case .greater: return .bool(order > 0)
      default: return .bool(order >= 0)
      }
    }
  }

  /// `element in container`.
  private static func containment(_ element: @escaping Program, _ container: @escaping Program) -> Program {
    { (frame) throws(EvaluationError) in
      try frame.budget.spend()
      let element = try element(&frame)
      let container = try container(&frame)
      return .bool(try contains(container, element, &frame.budget))
    }
  }

  private static func contains(
    _ container: ExpressionValue, _ element: ExpressionValue, _ budget: inout EvaluationBudget
  ) throws(EvaluationError) -> Bool {
    if case .map(let map) = container {
      if case .string(let text) = element { try budget.spend(bytes: text.utf8.count) }
      return ExpressionMapKey(element).map { map[$0] != nil } ?? false
    }
    guard let list = container.asList else { throw .noOverload("in", element, container) }
    if case .sequence(let sequence) = list, let known = isMember(element, of: sequence) {
      return known
    }
    for index in 0..<list.count {
      try budget.spend()
      if try element.isEqual(to: list.element(at: index), &budget) { return true }
    }
    return false
  }

  private static func isMember(_ element: ExpressionValue, of sequence: any ExpressionSequence) -> Bool? {
    switch element {
    case .object(let object): sequence.contains(identity: object.identity)
    case .string(let text): sequence.contains(identity: text)
    default: nil
    }
  }

  /// Operands joined by `&&`, of which false is decisive, or by `||`, of which true is: one that decides makes errors
  /// of the others disappear, whatever their order (CEL language definition, Logical Operators).
  static func logical(_ operands: [Program], decisive: Bool) -> Program {
    { (frame) throws(EvaluationError) in
      try frame.budget.spend()
      var absorbed = AbsorbedError()
      for operand in operands {
        if try absorbed.decides(operand, decisive, &frame) { return .bool(decisive) }
      }
      try absorbed.rethrow()
      return .bool(!decisive)
    }
  }

  /// `condition ? first : second`: only one of both is evaluated.
  static func conditional(
    _ condition: @escaping Program, _ first: @escaping Program, _ second: @escaping Program
  ) -> Program {
    { (frame) throws(EvaluationError) in
      try frame.budget.spend()
      return try condition(&frame).flag() ? first(&frame) : second(&frame)
    }
  }
}

/// The first error of operands of which another one may decide.
struct AbsorbedError {
  private var error: EvaluationError?

  /// Whether the value of `operand` is `decisive`. An error is kept, and so is a value that is not a bool; one that
  /// ends the evaluation is thrown.
  mutating func decides(
    _ operand: Program, _ decisive: Bool, _ frame: inout EvaluationFrame
  ) throws(EvaluationError) -> Bool {
    do throws(EvaluationError) {
      return try operand(&frame).flag() == decisive
    } catch {
      if error.isLimit { throw error }
      if self.error == nil { self.error = error }
      return false
    }
  }

  /// Throws the error that was kept, if there was any.
  func rethrow() throws(EvaluationError) {
    if let error { throw error }
  }
}

extension ExpressionValue {
  /// The value of a condition. Throws when it is not a bool.
  func flag() throws(EvaluationError) -> Bool {
    guard case .bool(let flag) = self else { throw .notBool(self) }
    return flag
  }
}
