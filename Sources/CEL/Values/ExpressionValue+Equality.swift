extension ExpressionValue {
  /// How deep values within values are compared.
  static let nestingLimit = 128

  /// Whether both are equal: values of different types are not, but numbers are compared as numbers, and an object is
  /// equal to the string that is its identity (CEL language definition, Equality). Comparing costs. Throws when the
  /// budget is spent, when the values are nested too deep, or when an element cannot be had.
  package func isEqual(
    to other: ExpressionValue, _ budget: inout EvaluationBudget, depth: Int = 0
  ) throws(EvaluationError) -> Bool {
    switch (self, other) {
    case (.null, .null): return true
    case (.bool(let left), .bool(let right)): return left == right
    case (.int(let left), .int(let right)): return left == right
    case (.string(let left), .string(let right)): return try left.isSame(as: right, &budget)
    case (.bytes(let left), .bytes(let right)):
      try budget.spend(bytes: left.count)
      return left == right
    case (.timestamp(let left), .timestamp(let right)): return left == right
    case (.duration(let left), .duration(let right)): return left == right
    case (.type(let left), .type(let right)): return left == right
    case (.object(let left), .object(let right)):
      return left === right ? true : try left.identity.isSame(as: right.identity, &budget)
    case (.object(let object), .string(let text)), (.string(let text), .object(let object)):
      return try object.identity.isSame(as: text, &budget)
    case (.map(let left), .map(let right)): return try left.isEqual(to: right, &budget, depth: depth)
    default:
      if let left = asList, let right = other.asList { return try left.isEqual(to: right, &budget, depth: depth) }
      return order(comparedAsNumberWith: other) == 0
    }
  }
}

extension ExpressionList {
  fileprivate func isEqual(
    to other: ExpressionList, _ budget: inout EvaluationBudget, depth: Int
  ) throws(EvaluationError) -> Bool {
    guard depth < ExpressionValue.nestingLimit else { throw .depthLimitExceeded }
    guard count == other.count else { return false }
    for index in 0..<count {
      try budget.spend()
      let left = try element(at: index)
      guard try left.isEqual(to: other.element(at: index), &budget, depth: depth + 1) else { return false }
    }
    return true
  }
}

extension ExpressionMap {
  fileprivate func isEqual(
    to other: ExpressionMap, _ budget: inout EvaluationBudget, depth: Int
  ) throws(EvaluationError) -> Bool {
    guard depth < ExpressionValue.nestingLimit else { throw .depthLimitExceeded }
    guard count == other.count else { return false }
    for (key, value) in zip(keys, values) {
      try budget.spend()
      guard let slot = ExpressionMapKey(key), let counterpart = other[slot] else { return false }
      guard try value.isEqual(to: counterpart, &budget, depth: depth + 1) else { return false }
    }
    return true
  }
}

extension String {
  fileprivate func isSame(as other: String, _ budget: inout EvaluationBudget) throws(EvaluationError) -> Bool {
    try budget.spend(bytes: Swift.min(utf8.count, other.utf8.count))
    return hasSameScalars(as: other)
  }
}
