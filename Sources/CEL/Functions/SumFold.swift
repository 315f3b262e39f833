/// `sum`.
struct SumFold: ListFold {
  let emptyValue: ExpressionValue
  private var total = DecimalSum()
  private(set) var kinds = NumberKinds()

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
