/// Keyway's functions of a list: `sum`, `avg`, `min` and `max`. `CollectionFunction`, whose value is the same,
/// describes how the value results from the elements.
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

  /// Returns the `sum` of a list of `type` without a number: 0 of the type of its elements, if that is known.
  static func emptySum(of type: ExpressionType) -> ExpressionValue {
    switch type {
    case .list(.double): .double(0)
    case .list(.uint): .uint(0)
    default: .int(0)
    }
  }

  /// Returns the sum of a list. Throws if an element is not a number, or if a sum of integers is out of range.
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

/// Combines the elements of a list into one value.
protocol ListFold {
  /// Adds an element. Throws if it is not of a type that the function takes.
  mutating func add(_ element: ExpressionValue, _ budget: inout EvaluationBudget) throws(EvaluationError)
  /// Returns the value of all added elements. Throws if it is out of range.
  func value() throws(EvaluationError) -> ExpressionValue
}

/// `sum`.
struct SumFold: ListFold {
  private let emptyValue: ExpressionValue
  private var total = DecimalSum()
  private var kinds = NumberKinds()

  init(emptyValue: ExpressionValue) { self.emptyValue = emptyValue }

  mutating func add(_ element: ExpressionValue, _ budget: inout EvaluationBudget) throws(EvaluationError) {
    switch element {
    case .null: return
    case .int(let number):
      total.add(number)
      kinds.ints += 1
    case .uint(let number):
      total.add(number)
      kinds.uints += 1
    case .double(let number):
      total.add(number)
      kinds.doubles += 1
    default: throw .noOverload(function: "sum", [element])
    }
  }

  func value() throws(EvaluationError) -> ExpressionValue {
    try total.value(kinds, emptyValue: emptyValue)
  }
}

/// `avg`.
struct AverageFold: ListFold {
  private var total = DecimalSum()
  private var count = 0

  mutating func add(_ element: ExpressionValue, _ budget: inout EvaluationBudget) throws(EvaluationError) {
    switch element {
    case .null: break
    case .int(let number): total.add(number)
    case .uint(let number): total.add(number)
    case .double(let number): total.add(number)
    default: throw .noOverload(function: "avg", [element])
    }
    count += 1
  }

  func value() throws(EvaluationError) -> ExpressionValue {
    total.average(count: count).map { .double($0) } ?? .null
  }
}

/// `min` and `max`.
struct ExtremeFold: ListFold {
  /// -1 for the least, 1 for the greatest.
  private let sign: Int
  private var best: ExpressionValue?

  init(sign: Int) { self.sign = sign }

  mutating func add(_ element: ExpressionValue, _ budget: inout EvaluationBudget) throws(EvaluationError) {
    guard !element.isNull else { return }
    guard let best else {
      // Compared with itself, so that a single value of a type without an order is a fault too.
      _ = try element.aggregateOrder(to: element, budget: &budget)
      self.best = element
      return
    }
    if try element.aggregateOrder(to: best, budget: &budget) * sign > 0 { self.best = element }
  }

  func value() throws(EvaluationError) -> ExpressionValue { best ?? .null }
}

/// Functions on numbers (CEL's math extension): `math.round`, `ceil`, `floor` and `trunc` of doubles, and `math.abs` of
/// numbers of every type.
enum MathFunctions {
  static let all = [
    rounding("math.round", .toNearestOrAwayFromZero), rounding("math.ceil", .up), rounding("math.floor", .down),
    rounding("math.trunc", .towardZero), abs,
  ]

  private static func rounding(_ name: String, _ rule: FloatingPointRoundingRule) -> FunctionDefinition {
    FunctionDefinition(name, [([.double], .double)]) { (arguments, _) throws(EvaluationError) in
      guard case .double(let number) = arguments[0] else { throw arguments.mismatch }
      return .double(number.rounded(rule))
    }
  }

  private static let abs = FunctionDefinition(
    "math.abs", [.int, .uint, .double].map { ([$0], $0) }
  ) { (arguments, _) throws(EvaluationError) in
    switch arguments[0] {
    case .int(let number):
      guard number > .min else { throw .overflow("int") }
      return .int(Swift.abs(number))
    case .uint: return arguments[0]
    case .double(let number): return .double(number.magnitude)
    default: throw arguments.mismatch
    }
  }
}
