/// Makes the program of a checked tree.
struct ProgramBuilder {
  private let source: Expression
  private let names: NameTable
  /// How many comprehension variables are in scope at once at most.
  private(set) var localCount = 0

  init(_ source: Expression, _ names: NameTable) { (self.source, self.names) = (source, names) }

  /// The program of `node`. Throws where a constant pattern is no regular expression.
  ///
  /// What calls itself over others for nested nodes is cut into small functions: their frames lie on one stack.
  mutating func program(for node: ExpressionNode) throws(ExpressionError) -> any ProgramNode {
    switch node.kind {
    case .literal, .collectionFunction: ProgramBuilder.leaf(node)
    case .identifier, .select: try reference(node)
    case .call: try call(node)
    case .binary: try binary(node)
    case .list, .map: try literal(node)
    case .comprehension: try comprehension(node)
    default: try operation(node)
    }
  }

  private static func leaf(_ node: ExpressionNode) -> any ProgramNode {
    switch node.kind {
    case .literal(let value): LiteralNode(value)
    case .collectionFunction(let index): CollectionFunctionNode(index)
    default: FailureNode("no leaf")
    }
  }

  private mutating func operation(_ node: ExpressionNode) throws(ExpressionError) -> any ProgramNode {
    let operands = try programs(for: node.kind.children)
    switch node.kind {
    case .has(_, let field): return PresenceNode(operands[0], field, fieldIndex(node))
    case .index: return IndexNode(operands[0], operands[1])
    case .unary(let sign, _): return UnaryNode(sign, operands[0])
    case .all: return LogicalNode(operands, decisive: false)
    case .any: return LogicalNode(operands, decisive: true)
    case .conditional: return ConditionalNode(operands[0], operands[1], operands[2])
    default: return FailureNode("no operation")
    }
  }

  private mutating func programs(for nodes: [ExpressionNode]) throws(ExpressionError) -> [any ProgramNode] {
    var programs: [any ProgramNode] = []
    for node in nodes { programs.append(try program(for: node)) }
    return programs
  }

  private func fieldIndex(_ node: ExpressionNode) -> Int {
    if case .field(let index)? = names.meanings[node.id] { index } else { -1 }
  }

  private mutating func reference(_ node: ExpressionNode) throws(ExpressionError) -> any ProgramNode {
    if let program = meaning(node) { return program }
    guard case .select(let operand, let field) = node.kind else { return FailureNode("undeclared reference") }
    return SelectNode(try program(for: operand), field, fieldIndex(node))
  }

  /// What the whole of a name stands for, nil for the key of a value.
  private mutating func meaning(_ node: ExpressionNode) -> (any ProgramNode)? {
    switch names.meanings[node.id] {
    case .variable(let name, let index): return VariableNode(name, index)
    case .local(let number):
      localCount = max(localCount, number + 1)
      return LocalNode(number)
    case .type(let name): return LiteralNode(.type(name))
    case .nothing(let message): return FailureNode(message)
    case .field, .function, .binds, nil: return nil
    }
  }

  private mutating func binary(_ node: ExpressionNode) throws(ExpressionError) -> any ProgramNode {
    let operands = try programs(for: node.kind.children)
    guard case .binary(let sign, _, _) = node.kind else { return FailureNode("no operator") }
    switch sign {
    case .add, .subtract, .multiply, .divide, .modulo: return ArithmeticNode(sign, operands[0], operands[1])
    case .equal, .notEqual: return EqualityNode(operands[0], operands[1], isNegated: sign == .notEqual)
    case .less, .lessOrEqual, .greater, .greaterOrEqual: return OrderNode(sign, operands[0], operands[1])
    case .contained: return ContainmentNode(operands[0], operands[1])
    }
  }

  /// A list or a map. A list of constants is made once.
  private mutating func literal(_ node: ExpressionNode) throws(ExpressionError) -> any ProgramNode {
    let programs = try programs(for: node.kind.children)
    guard case .list = node.kind else {
      return MapNode(stride(from: 0, to: programs.count, by: 2).map { (programs[$0], programs[$0 + 1]) })
    }
    let constants = programs.compactMap { ($0 as? LiteralNode)?.value }
    return constants.count == programs.count ? LiteralNode(.list(constants)) : ListNode(programs)
  }

  private mutating func call(_ node: ExpressionNode) throws(ExpressionError) -> any ProgramNode {
    let operands = operands(node)
    return try made(node, operands, programs(for: operands))
  }

  /// The receiver and the arguments of a call. The name in front of `strings.quote` is no receiver.
  private func operands(_ node: ExpressionNode) -> [ExpressionNode] {
    guard case .call(let name, _, let arguments) = node.kind else { return [] }
    guard case .function(let function)? = names.meanings[node.id] else { return [] }
    return function.name == name ? node.kind.children : arguments
  }

  private func made(
    _ node: ExpressionNode, _ operands: [ExpressionNode], _ programs: [any ProgramNode]
  ) throws(ExpressionError) -> any ProgramNode {
    guard case .function(let function)? = names.meanings[node.id] else {
      if case .nothing(let message)? = names.meanings[node.id] { return FailureNode(message) }
      return FailureNode("undeclared function")
    }
    if function.name == "matches", case .literal(.string(let pattern)) = operands[1].kind {
      return MatchNode(programs[0], try regex(pattern, operands[1].offset))
    }
    if function.name == "sum" {
      return SumNode(programs[0], emptyValue: AggregateFunctions.emptySum(of: names.types[operands[0].id]))
    }
    return CallNode(function, programs)
  }

  private func regex(_ pattern: String, _ offset: Int) throws(ExpressionError) -> RegexProgram {
    do throws(RegexError) {
      return try RegexProgram(pattern)
    } catch {
      throw ExpressionError(error.message, at: offset, in: source.text)
    }
  }

  private mutating func comprehension(_ node: ExpressionNode) throws(ExpressionError) -> any ProgramNode {
    let programs = try programs(for: node.kind.children)
    guard case .binds(let number)? = names.meanings[node.id], case .comprehension(let macro) = node.kind else {
      return FailureNode("unbound variable")
    }
    localCount = max(localCount, number + 1)
    let range = ElementRange(operand: programs[0], variable: number)
    switch macro.function {
    case .all: return QuantifierNode(range, programs[1], decisive: false)
    case .exists: return QuantifierNode(range, programs[1], decisive: true)
    case .existsOne: return UniquenessNode(range, programs[1])
    case .filter: return TransformNode(range, programs[1], nil)
    case .map: return TransformNode(range, macro.predicate == nil ? nil : programs[1], programs[programs.count - 1])
    }
  }
}
