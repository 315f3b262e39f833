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
  mutating func program(for node: ExpressionNode) throws(ExpressionError) -> Program {
    switch node.kind {
    case .literal(let value): Programs.literal(value)
    case .collectionFunction(let index): Programs.collectionFunction(index)
    case .identifier, .select: try reference(node)
    case .call: try call(node)
    case .list, .map: try literal(node)
    case .comprehension: try comprehension(node)
    default: try operation(node)
    }
  }

  private mutating func operation(_ node: ExpressionNode) throws(ExpressionError) -> Program {
    let operands = try programs(for: node.kind.children)
    switch node.kind {
    case .has(_, let field): return Programs.presence(operands[0], field, fieldIndex(node))
    case .index: return Programs.index(operands[0], operands[1])
    case .unary(let sign, _): return Programs.unary(sign, operands[0])
    case .binary(let sign, _, _): return Programs.binary(sign, operands[0], operands[1])
    case .all: return Programs.logical(operands, decisive: false)
    case .any: return Programs.logical(operands, decisive: true)
    case .conditional: return Programs.conditional(operands[0], operands[1], operands[2])
    default: return Programs.failure("no operation")
    }
  }

  private mutating func programs(for nodes: [ExpressionNode]) throws(ExpressionError) -> [Program] {
    var programs: [Program] = []
    for node in nodes { programs.append(try program(for: node)) }
    return programs
  }

  private func fieldIndex(_ node: ExpressionNode) -> Int {
    if case .field(let index)? = names.meanings[node.id] { index } else { -1 }
  }

  private mutating func reference(_ node: ExpressionNode) throws(ExpressionError) -> Program {
    switch names.meanings[node.id] {
    case .variable(let name, let index): return Programs.variable(name, index)
    case .local(let number):
      localCount = max(localCount, number + 1)
      return Programs.local(number)
    case .type(let name): return Programs.literal(.type(name))
    case .nothing(let message): return Programs.failure(message)
    case .field, .function, .binds, nil: break
    }
    guard case .select(let operand, let field) = node.kind else { return Programs.failure("undeclared reference") }
    return Programs.select(try program(for: operand), field, fieldIndex(node))
  }

  /// A list or a map. A list of constants is made once.
  private mutating func literal(_ node: ExpressionNode) throws(ExpressionError) -> Program {
    let programs = try programs(for: node.kind.children)
    guard case .list(let elements) = node.kind else {
      return Programs.map(stride(from: 0, to: programs.count, by: 2).map { (programs[$0], programs[$0 + 1]) })
    }
    var constants: [ExpressionValue] = []
    for element in elements {
      guard case .literal(let value) = element.kind else { return Programs.list(programs) }
      constants.append(value)
    }
    return Programs.literal(.list(constants))
  }

  private mutating func call(_ node: ExpressionNode) throws(ExpressionError) -> Program {
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
    _ node: ExpressionNode, _ operands: [ExpressionNode], _ programs: [Program]
  ) throws(ExpressionError) -> Program {
    guard case .function(let function)? = names.meanings[node.id] else {
      if case .nothing(let message)? = names.meanings[node.id] { return Programs.failure(message) }
      return Programs.failure("undeclared function")
    }
    if function.name == "matches", case .literal(.string(let pattern)) = operands[1].kind {
      return Programs.match(programs[0], try regex(pattern, operands[1].offset))
    }
    if function.name == "sum" {
      return Programs.sum(programs[0], emptyValue: AggregateFunctions.emptySum(of: names.types[operands[0].id]))
    }
    return Programs.call(function, programs)
  }

  private func regex(_ pattern: String, _ offset: Int) throws(ExpressionError) -> RegexProgram {
    do throws(RegexError) {
      return try RegexProgram(pattern)
    } catch {
      throw ExpressionError(error.message, at: offset, in: source.text)
    }
  }

  private mutating func comprehension(_ node: ExpressionNode) throws(ExpressionError) -> Program {
    let programs = try programs(for: node.kind.children)
    guard case .binds(let number)? = names.meanings[node.id], case .comprehension(let macro) = node.kind else {
      return Programs.failure("unbound variable")
    }
    localCount = max(localCount, number + 1)
    let range = Programs.Range(macro: macro.function, operand: programs[0], variable: number)
    switch macro.function {
    case .all: return Programs.quantifier(range, programs[1], decisive: false)
    case .exists: return Programs.quantifier(range, programs[1], decisive: true)
    case .existsOne: return Programs.uniqueness(range, programs[1])
    case .filter: return Programs.transform(range, where: programs[1], nil)
    case .map:
      return Programs.transform(range, where: macro.predicate == nil ? nil : programs[1], programs[programs.count - 1])
    }
  }
}
