/// Keyway's functions of a list: `sum`, `avg`, `min` and `max`. How elements make the value is said at
/// `CollectionFunction`, whose value is the same.
enum AggregateFunctions {
  static let all = [sum, avg, min, max]

  private static let numbers: [ExpressionType] = [.int, .uint, .double]
  private static let ordered: [ExpressionType] = [.int, .uint, .double, .string, .timestamp, .duration]

  private static let sum = FunctionDefinition(
    "sum", numbers.map { ([.list($0)], $0) }
  ) { (arguments, budget) throws(EvaluationError) in
    try sum(arguments[0], emptyValue: .int(0), &budget)
  }

  private static let avg = FunctionDefinition(
    "avg", numbers.map { ([.list($0)], .double) }
  ) { (arguments, budget) throws(EvaluationError) in
    try fold("avg", arguments[0], &budget, AverageFold())
  }

  private static let min = FunctionDefinition(
    "min", ordered.map { ([.list($0)], $0) }
  ) { (arguments, budget) throws(EvaluationError) in
    try fold("min", arguments[0], &budget, ExtremeFold(sign: -1))
  }

  private static let max = FunctionDefinition(
    "max", ordered.map { ([.list($0)], $0) }
  ) { (arguments, budget) throws(EvaluationError) in
    try fold("max", arguments[0], &budget, ExtremeFold(sign: 1))
  }

  /// What `sum` is when there is no number in a list of `type`: 0 of the type of its elements, if that is known.
  static func emptySum(of type: ExpressionType) -> ExpressionValue {
    switch type {
    case .list(.double): .double(0)
    case .list(.uint): .uint(0)
    default: .int(0)
    }
  }

  /// The sum of a list. Throws when an element is not a number, or when a sum of integers is out of range.
  static func sum(
    _ list: ExpressionValue, emptyValue: ExpressionValue, _ budget: inout EvaluationBudget
  ) throws(EvaluationError) -> ExpressionValue {
    try fold("sum", list, &budget, SumFold(emptyValue: emptyValue))
  }

  private static func fold(
    _ name: String, _ list: ExpressionValue, _ budget: inout EvaluationBudget, _ fold: some ListFold
  ) throws(EvaluationError) -> ExpressionValue {
    guard let elements = list.asList else { throw .noOverload(function: name, [list]) }
    var fold = fold
    for index in 0..<elements.count {
      try budget.spend()
      try fold.add(elements.element(at: index), &budget)
    }
    return try fold.value()
  }
}
