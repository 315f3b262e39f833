extension Parser {
  /// How closely operators bind, the loosest least.
  private static let levels: [String: Int] = [
    "||": 0, "&&": 1, "==": 2, "!=": 2, "<": 2, "<=": 2, ">": 2, ">=": 2, "in": 2, "+": 3, "-": 3, "*": 4, "/": 4,
    "%": 4,
  ]

  /// An operator that waits for its last operand.
  private struct Pending {
    let sign: String
    let level: Int
    let offset: Int
    /// One, or more when `&&` or `||` joins them.
    var operands: [ExpressionNode]

    /// Whether the operator `sign` after its last operand joins one more.
    func isJoined(by sign: String?) -> Bool { level < 2 && sign == self.sign }
  }

  /// Operands with operators between them, or one operand. Operators wait in a list rather than on the stack.
  mutating func operation() throws(ExpressionError) -> ExpressionNode {
    var pending: [Pending] = []
    var operand = try unary()
    while try push(&operand, &pending) { operand = try unary() }
    return operand
  }

  /// Completes what `operand` is the last operand of, and takes the operator that is next. Whether there is one.
  private mutating func push(
    _ operand: inout ExpressionNode, _ pending: inout [Pending]
  ) throws(ExpressionError) -> Bool {
    operand = try completed(&pending, operand)
    guard let (sign, level) = nextOperator() else { return false }
    if let last = pending.last, last.isJoined(by: sign) {
      pending[pending.count - 1].operands.append(operand)
    } else {
      pending.append(Pending(sign: sign, level: level, offset: token.offset, operands: [operand]))
    }
    try advance()
    return true
  }

  /// What operators that bind at least as closely as the next one make with `operand` as their last.
  private mutating func completed(
    _ pending: inout [Pending], _ operand: ExpressionNode
  ) throws(ExpressionError) -> ExpressionNode {
    let next = nextOperator()
    var operand = operand
    while let last = pending.last, last.level >= next?.level ?? -1, !last.isJoined(by: next?.sign) {
      pending.removeLast()
      operand = try make(Parser.kind(last, operand), last.offset)
    }
    return operand
  }

  private static func kind(_ operation: Pending, _ operand: ExpressionNode) -> ExpressionNode.Kind {
    let operands = operation.operands + [operand]
    guard let sign = BinaryOperator(rawValue: operation.sign) else {
      return operation.sign == "&&" ? .all(operands) : .any(operands)
    }
    return .binary(sign, operands[0], operands[1])
  }

  private func nextOperator() -> (sign: String, level: Int)? {
    switch token.kind {
    case .sign(let sign): Parser.levels[sign].map { (sign, $0) }
    case .identifier("in"): ("in", 2)
    default: nil
    }
  }

  /// `!a`, `-a`, or less.
  private mutating func unary() throws(ExpressionError) -> ExpressionNode {
    if token.kind == .sign("!") || token.kind == .sign("-") { return try signed() }
    let first = try primary()
    return hasMember ? try member(first) : first
  }

  /// Signs with their operand. A minus before a number is part of it.
  private mutating func signed() throws(ExpressionError) -> ExpressionNode {
    var signs: [(UnaryOperator, Int)] = []
    var number: ExpressionNode?
    while number == nil, case .sign(let text) = token.kind, let sign = UnaryOperator(rawValue: text) {
      let offset = token.offset
      try advance()
      if sign == .negate { number = try negativeNumber(offset) }
      if number == nil { signs.append((sign, offset)) }
    }
    var node = if let number { try member(number) } else { try unary() }
    for (sign, offset) in signs.reversed() { node = try make(.unary(sign, node), offset) }
    return node
  }

  private mutating func negativeNumber(_ offset: Int) throws(ExpressionError) -> ExpressionNode? {
    switch token.kind {
    case .int(let magnitude):
      guard let number = Int64(exactly: -Int128(magnitude)) else {
        throw fault("the integer -\(magnitude) is out of range", offset)
      }
      try advance()
      return try make(.literal(.int(number)), offset)
    case .double(let number):
      try advance()
      return try make(.literal(.double(-number)), offset)
    default: return nil
    }
  }
}
