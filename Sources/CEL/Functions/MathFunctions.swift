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
