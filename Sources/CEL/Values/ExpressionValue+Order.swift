extension ExpressionValue {
  /// Below 0, 0 or above 0 as this is less than, equal to or greater than `other`; nil when either is not a number or
  /// the other one is not a number. An integer is compared with a double as a double, which the language's conformance
  /// tests want; integers of both types are compared exactly.
  func order(comparedAsNumberWith other: ExpressionValue) -> Int? {
    switch (self, other) {
    case (.int(let left), .int(let right)): ExpressionValue.sign(left, right)
    case (.uint(let left), .uint(let right)): ExpressionValue.sign(left, right)
    case (.double(let left), .double(let right)): ExpressionValue.sign(left, right)
    case (.int(let left), .uint(let right)): left < right ? -1 : (left == right ? 0 : 1)
    case (.uint(let left), .int(let right)): left < right ? -1 : (left == right ? 0 : 1)
    case (.int(let left), .double(let right)): ExpressionValue.sign(Double(left), right)
    case (.uint(let left), .double(let right)): ExpressionValue.sign(Double(left), right)
    case (.double(let left), .int(let right)): ExpressionValue.sign(left, Double(right))
    case (.double(let left), .uint(let right)): ExpressionValue.sign(left, Double(right))
    default: nil
    }
  }

  private static func sign<Value: Comparable>(_ left: Value, _ right: Value) -> Int? {
    left < right ? -1 : (left == right ? 0 : (left > right ? 1 : nil))
  }

  /// Below 0, 0 or above 0 by the language's `<` (CEL language definition, Ordering); nil when one is NaN. Throws
  /// `noSuchOverload` when values of these types have no order; `operation` is named in its message.
  func order(
    to other: ExpressionValue, _ operation: String, _ budget: inout EvaluationBudget
  ) throws(EvaluationError) -> Int? {
    switch (self, other) {
    case (.string(let left), .string(let right)):
      try budget.spend(bytes: Swift.min(left.utf8.count, right.utf8.count))
      return left.compareBytes(right)
    case (.bool(let left), .bool(let right)): return (left ? 1 : 0) - (right ? 1 : 0)
    case (.timestamp(let left), .timestamp(let right)): return ExpressionValue.sign(left, right)
    case (.duration(let left), .duration(let right)): return ExpressionValue.sign(left, right)
    case (.bytes(let left), .bytes(let right)):
      try budget.spend(bytes: Swift.min(left.count, right.count))
      return left.lexicographicallyPrecedes(right) ? -1 : (left == right ? 0 : 1)
    case (.int, .int), (.int, .uint), (.int, .double), (.uint, .int), (.uint, .uint), (.uint, .double),
      (.double, .int), (.double, .uint), (.double, .double):
      return order(comparedAsNumberWith: other)
    default: throw .noOverload(operation, self, other)
    }
  }
}
