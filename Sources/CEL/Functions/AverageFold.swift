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
