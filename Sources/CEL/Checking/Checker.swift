/// Finds the types of an expression's nodes and what its names stand for (CEL language definition, Gradual Type
/// Checking).
struct Checker {
  /// A comprehension's variable in scope.
  private struct Local {
    let name: String
    let number: Int
    let type: ExpressionType
    /// The keys whose members it may be one of, where that is known.
    let origins: [ComparedValue]
  }

  let expression: Expression
  let environment: any ExpressionEnvironment
  /// Whether faults are left to evaluation.
  let isLenient: Bool
  var names: NameTable
  private var locals: [Local] = []
  private var errors: [ExpressionError] = []

  init(_ expression: Expression, _ environment: any ExpressionEnvironment, isLenient: Bool) {
    self.expression = expression
    self.environment = environment
    self.isLenient = isLenient
    names = NameTable(nodeCount: expression.nodeCount)
  }

  /// Checks the whole expression. Throws the faults.
  mutating func check() throws(ExpressionError) -> NameTable {
    _ = type(of: expression.root)
    errors.sort { $0.offset < $1.offset }
    guard var first = errors.first else { return names }
    first.further = Array(errors.dropFirst().prefix(ExpressionError.furtherLimit))
    throw first
  }

  /// The type of a node, which is noted.
  mutating func type(of node: ExpressionNode) -> ExpressionType {
    let type = newType(of: node)
    names.types[node.id] = type
    return type
  }

  private mutating func newType(of node: ExpressionNode) -> ExpressionType {
    switch node.kind {
    case .literal(let value): ExpressionType(literal: value)
    case .identifier, .select: reference(node)
    case .has(let operand, let field): presence(node, operand, field)
    case .index(let operand, let index): element(node, operand, index)
    case .call(let name, let target, let arguments): call(node, name, target, arguments)
    case .unary(let sign, let operand): unary(node, sign, operand)
    case .binary(let sign, let left, let right): binary(node, sign, left, right)
    case .all(let operands): logical(node, "&&", operands)
    case .any(let operands): logical(node, "||", operands)
    case .conditional(let condition, let first, let second): conditional(node, condition, first, second)
    case .list(let elements): .list(joined(elements))
    case .map(let entries): map(entries)
    case .comprehension(let macro): comprehension(node, macro)
    case .collectionFunction: .dyn
    }
  }

  /// Notes a fault, unless faults are left to evaluation. Gives `dyn`, so that no other fault follows from it.
  mutating func fault(_ message: String, _ node: ExpressionNode) -> ExpressionType {
    if !isLenient { errors.append(ExpressionError(message, at: node.offset, in: expression.text)) }
    return .dyn
  }

  private mutating func joined(_ nodes: [ExpressionNode]) -> ExpressionType {
    guard let first = nodes.first else { return .dyn }
    var joined = type(of: first)
    for node in nodes.dropFirst() { joined = joined.joined(with: type(of: node)) ?? .dyn }
    return joined
  }

  /// Only types that can be keys are keys: others would let a type grow without end.
  private mutating func map(_ entries: [(key: ExpressionNode, value: ExpressionNode)]) -> ExpressionType {
    var key: ExpressionType?
    for entry in entries {
      var type = type(of: entry.key)
      if ![.bool, .int, .uint, .string, .dyn].contains(type) {
        type = fault("a key of a map cannot be a \(type)", entry.key)
      }
      key = key.map { $0.joined(with: type) ?? .dyn } ?? type
    }
    return .map(key ?? .dyn, joined(entries.map(\.value)))
  }

  /// The comprehension's variable `name` that is innermost, nil when there is none.
  func local(_ name: String) -> (number: Int, type: ExpressionType)? {
    locals.last { $0.name == name }.map { ($0.number, $0.type) }
  }

  /// What the members of a comprehension's variable, by its number, are of.
  func origins(ofLocal number: Int) -> [ComparedValue] { locals.last { $0.number == number }?.origins ?? [] }

  /// The types within the scope of a comprehension's variable.
  private mutating func binding(
    _ macro: Comprehension, _ type: ExpressionType, _ node: ExpressionNode, _ nodes: [ExpressionNode?]
  ) -> [ExpressionType?] {
    names.meanings[node.id] = .binds(locals.count)
    locals.append(
      Local(name: macro.variable, number: locals.count, type: type, origins: members(of: macro.range)))
    defer { locals.removeLast() }
    return nodes.map { node in node.map { self.type(of: $0) } }
  }

  private mutating func comprehension(_ node: ExpressionNode, _ macro: Comprehension) -> ExpressionType {
    let range = type(of: macro.range)
    let element: ExpressionType
    switch range {
    case .list(let type): element = type
    case .map(let key, _): element = key
    case .dyn: element = .dyn
    default: element = fault("\(macro.function.rawValue)() takes a list or a map, not \(range)", macro.range)
    }
    let types = binding(macro, element, node, [macro.predicate, macro.transform])
    if let predicate = macro.predicate, let type = types[0], !type.isAssignable(to: .bool) {
      _ = fault("the condition of \(macro.function.rawValue)() must be a bool, not \(type)", predicate)
    }
    switch macro.function {
    case .all, .exists, .existsOne: return .bool
    case .map: return .list(types[1] ?? .dyn)
    case .filter: return .list(element)
    }
  }
}

extension ExpressionType {
  /// The type of a constant.
  init(literal value: ExpressionValue) {
    switch value {
    case .null: self = .null
    case .bool: self = .bool
    case .int: self = .int
    case .uint: self = .uint
    case .double: self = .double
    case .string: self = .string
    case .bytes: self = .bytes
    default: self = .dyn
    }
  }
}
