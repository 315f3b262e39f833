/// Comparisons that can never hold, because one side is a literal that the other side can never be.
extension Checker {
  /// Notes a fault where a comparison of two operands can never hold, at the literal.
  mutating func checkLiterals(_ sign: BinaryOperator, _ left: ExpressionNode, _ right: ExpressionNode) {
    checkLiteral(sign, left, literal: right)
    checkLiteral(sign, right, literal: left)
  }

  private mutating func checkLiteral(_ sign: BinaryOperator, _ operand: ExpressionNode, literal: ExpressionNode) {
    guard let value = Self.constant(literal), !value.isNull else { return }
    let isEquality = sign == .equal || sign == .notEqual
    var mistake: String?
    for compared in compared(operand) {
      // One that can be equal is enough.
      guard let found = environment.mistake(comparing: compared, with: value, isEquality: isEquality) else { return }
      mistake = mistake ?? found
    }
    if let mistake { _ = fault(mistake, literal) }
  }

  /// What is known of an operand, of each thing that it may be; nothing where that is no more than its type.
  private func compared(_ operand: ExpressionNode) -> [ComparedValue] {
    if case .object(let entity) = names.types[operand.id] { return [.object(entity)] }
    if case .literal = operand.kind { return [] }
    let sources = sources(of: operand)
    guard sources.isEmpty else { return sources }
    switch names.types[operand.id] {
    case .int: return [.whole(isSigned: true)]
    case .uint: return [.whole(isSigned: false)]
    default: return []
    }
  }

  /// What an operand's value is read from; nothing where it, or a part that it may be, is worked out.
  private func sources(of operand: ExpressionNode) -> [ComparedValue] {
    switch (operand.kind, names.meanings[operand.id]) {
    case (_, .variable(let name, _)): return [.variable(name)]
    case (_, .local(let number)): return origins(ofLocal: number)
    case (.select(let holder, let field), .field):
      guard case .object(let entity) = names.types[holder.id] else { return [] }
      return [.field(field, inObject: entity)]
    case (.index(let list, _), _): return members(of: list)
    case (.call("min", target: nil, let arguments), _), (.call("max", target: nil, let arguments), _):
      return arguments.count == 1 ? members(of: arguments[0]) : []
    case (.conditional(_, let first, let second), _): return sources(ofEach: [first, second])
    default: return []
    }
  }

  /// What one of several operands is read from, whichever it is: null is no matter.
  private func sources(ofEach operands: [ExpressionNode]) -> [ComparedValue] {
    var all: [ComparedValue] = []
    for operand in operands {
      if case .literal(.null) = operand.kind { continue }
      let found = sources(of: operand)
      guard !found.isEmpty else { return [] }
      all += found
    }
    return all
  }

  /// What the members of a list are read from; nothing where they are worked out.
  func members(of list: ExpressionNode) -> [ComparedValue] {
    switch list.kind {
    case .comprehension(let macro) where macro.function == .filter: return members(of: macro.range)
    case .comprehension(let macro) where macro.function == .map: return macro.transform.map(sources) ?? []
    case .list(let elements): return sources(ofEach: elements)
    default: break
    }
    var members: [ComparedValue] = []
    for source in sources(of: list) {
      switch source {
      case .variable(let name): members.append(.memberOfVariable(name))
      case .field(let name, let entity): members.append(.memberOfField(name, inObject: entity))
      default: return []
      }
    }
    return members
  }

  /// What a node is whatever is evaluated: a literal, or the moment that one names.
  static func constant(_ node: ExpressionNode) -> ExpressionValue? {
    switch node.kind {
    case .literal(let literal): return literal
    case .call("timestamp", target: nil, let arguments) where arguments.count == 1:
      guard case .literal(.string(let text)) = arguments[0].kind else { return nil }
      return ExpressionTimestamp(parsing: text).map(ExpressionValue.timestamp)
    default: return nil
    }
  }

  /// Notes a fault where `timestamp("…")` names no moment, if the environment wants that known.
  mutating func checkTimestamp(_ arguments: [ExpressionNode]) {
    guard environment.refusesBadTimestamps, arguments.count == 1, case .literal(.string(let text)) = arguments[0].kind,
      ExpressionTimestamp(parsing: text) == nil
    else { return }
    _ = fault("\(ExpressionValue.string(text).debugText) is no timestamp such as 2010-03-01T12:00:00Z", arguments[0])
  }

  /// What may be done about operands that an operator does not take; nothing where no advice is to be had.
  static func hint(_ sign: BinaryOperator, _ left: ExpressionType, _ right: ExpressionType) -> String {
    if left.isNumber, right.isNumber, sign != .modulo, sign != .contained {
      let other = left == .double ? right : left
      return left == .double || right == .double
        ? "; write double(…) around the \(other)" : "; write int(…) around the uint"
    }
    guard left == .timestamp && right == .string || left == .string && right == .timestamp else { return "" }
    return "; write timestamp(…) around the string"
  }
}
