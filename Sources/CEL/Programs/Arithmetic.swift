/// The operators of numbers, times, and of what can be put together (CEL language definition, Numeric Values,
/// Overflow).
enum Arithmetic {
  @inline(__always)
  static func doubles(_ sign: BinaryOperator, _ left: Double, _ right: Double) throws(EvaluationError) -> Double {
    switch sign {
    case .add: return left + right
    case .subtract: return left - right
    case .multiply: return left * right
    case .divide: return left / right
    default: throw .noOverload(sign.rawValue, .double(left), .double(right))
    }
  }

  @inline(__always)
  static func integers<Number: FixedWidthInteger>(
    _ sign: BinaryOperator, _ left: Number, _ right: Number, _ type: String
  ) throws(EvaluationError) -> Number {
    let result: (partialValue: Number, overflow: Bool)
    switch sign {
    case .add: result = left.addingReportingOverflow(right)
    case .subtract: result = left.subtractingReportingOverflow(right)
    case .multiply: result = left.multipliedReportingOverflow(by: right)
    case .divide, .modulo:
      guard right != 0 else { throw EvaluationError(.divisionByZero, "division of \(left) by zero") }
      result =
        sign == .divide ? left.dividedReportingOverflow(by: right) : left.remainderReportingOverflow(dividingBy: right)
    default: throw EvaluationError(.noSuchOverload, "no such overload: \(type) \(sign.rawValue) \(type)")
    }
    guard !result.overflow else { throw .overflow(type) }
    return result.partialValue
  }

  /// `+` and `-` of values that are not numbers. What is put together costs its size.
  static func others(
    _ sign: BinaryOperator, _ left: ExpressionValue, _ right: ExpressionValue, _ budget: inout EvaluationBudget
  ) throws(EvaluationError) -> ExpressionValue {
    switch (sign, left, right) {
    case (.add, .string(let left), .string(let right)):
      try budget.spend(bytes: left.utf8.count + right.utf8.count)
      return .string(left + right)
    case (.add, .bytes(let left), .bytes(let right)):
      try budget.spend(bytes: left.count + right.count)
      return .bytes(left + right)
    case (.add, .timestamp(let time), .duration(let span)), (.add, .duration(let span), .timestamp(let time)):
      return .timestamp(try time.adding(span))
    case (.add, .duration(let left), .duration(let right)): return .duration(try left.adding(right))
    case (.subtract, .timestamp(let time), .duration(let span)): return .timestamp(try time.subtracting(span))
    case (.subtract, .timestamp(let left), .timestamp(let right)): return .duration(try left.since(right))
    case (.subtract, .duration(let left), .duration(let right)): return .duration(try left.subtracting(right))
    default:
      guard sign == .add, let left = left.asList, let right = right.asList else {
        throw .noOverload(sign.rawValue, left, right)
      }
      return .list(try left.materialised(&budget) + right.materialised(&budget))
    }
  }
}
