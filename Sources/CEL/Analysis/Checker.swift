import Support

/// Finds the types of an expression's nodes and the meanings of its names (CEL language definition, Gradual Type
/// Checking).
struct Checker {
  /// A comprehension's variable in scope.
  private struct Local {
    let name: String
    let number: Int
    let type: ExpressionType
    /// The keys whose members it may be one of, if that is known.
    let origins: [ComparedValue]
  }

  private let expression: Expression
  private let environment: any ExpressionEnvironment
  /// True if faults are left to evaluation.
  private let isLenient: Bool
  private var names: NameTable
  private var locals: [Local] = []
  private var errors: [ExpressionError] = []

  init(_ expression: Expression, _ environment: any ExpressionEnvironment, isLenient: Bool) {
    self.expression = expression
    self.environment = environment
    self.isLenient = isLenient
    names = NameTable(nodeCount: expression.nodeCount)
  }

  /// Checks the whole expression. Throws the first fault in the order of the text.
  mutating func check() throws(ExpressionError) -> NameTable {
    _ = type(of: expression.root)
    if let first = errors.min(by: { $0.offset < $1.offset }) { throw first }
    return names
  }

  /// Determines, records and returns the type of a node.
  private mutating func type(of node: ExpressionNode) -> ExpressionType {
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
    case .all(let operands): logical("&&", operands)
    case .any(let operands): logical("||", operands)
    case .conditional(let condition, let first, let second): conditional(node, condition, first, second)
    case .list(let elements): .list(joined(elements))
    case .map(let entries): map(entries)
    case .comprehension(let macro): comprehension(node, macro)
    case .collectionFunction: .dyn
    }
  }

  /// Records a fault, unless faults are left to evaluation. Returns `dyn`, so that no other fault follows from it.
  private mutating func fault(_ message: String, _ node: ExpressionNode) -> ExpressionType {
    if !isLenient { errors.append(ExpressionError(message, at: node.offset, in: expression.text)) }
    return .dyn
  }

  private mutating func joined(_ nodes: [ExpressionNode]) -> ExpressionType {
    guard let first = nodes.first else { return .dyn }
    var joined = type(of: first)
    for node in nodes.dropFirst() { joined = joined.joined(with: type(of: node)) ?? .dyn }
    return joined
  }

  /// Returns the type of a map. Only types that can be keys are used for keys: others would let a type grow without
  /// end.
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

  /// Returns the innermost comprehension variable with this name; nil if there is none.
  private func local(_ name: String) -> (number: Int, type: ExpressionType)? {
    locals.last { $0.name == name }.map { ($0.number, $0.type) }
  }

  /// Returns the values that a comprehension's variable, given by its number, is a member of.
  private func origins(ofLocal number: Int) -> [ComparedValue] { locals.last { $0.number == number }?.origins ?? [] }

  /// Returns the types of `nodes` within the scope of a comprehension's variable.
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

  // MARK: Names

  /// Returns the identifiers of a chain of selections, from the left; nil if the node is not such a chain.
  private func chain(_ node: ExpressionNode) -> (names: [String], isAbsolute: Bool)? {
    var names: [String] = []
    var node = node
    while true {
      switch node.kind {
      case .identifier(let name, let isAbsolute): return (([name] + names.reversed()), isAbsolute)
      case .select(let operand, let field):
        names.append(field)
        node = operand
      default: return nil
      }
    }
  }

  /// Resolves a name with or without dots. The longest declared name wins (CEL language definition, Name Resolution),
  /// but a comprehension's variable hides all names that begin with its name.
  private mutating func reference(_ node: ExpressionNode) -> ExpressionType {
    if let (parts, isAbsolute) = chain(node) {
      if !isAbsolute, let local = local(parts[0]) {
        if parts.count == 1 {
          names.meanings[node.id] = .local(local.number)
          return local.type
        }
      } else if let type = declared(parts.joined(separator: "."), node) {
        return type
      } else if parts.count == 1 {
        return undeclared(parts[0], node)
      }
    }
    guard case .select(let operand, let field) = node.kind else { return .dyn }
    return selection(node, operand, field)
  }

  /// Returns the type of a variable or of a type's name; nil if the name is neither.
  private mutating func declared(_ name: String, _ node: ExpressionNode) -> ExpressionType? {
    if let type = environment.type(ofVariable: name) {
      names.meanings[node.id] = .variable(name, index: environment.index(ofVariable: name) ?? -1)
      return type
    }
    guard TypeNames.denotations.contains(name) else { return nil }
    names.meanings[node.id] = .type(name)
    return .type
  }

  private mutating func undeclared(_ name: String, _ node: ExpressionNode) -> ExpressionType {
    let message = "undeclared reference to '\(name)'\(NearestName.hint(for: name, among: environment.variableNames))"
    names.meanings[node.id] = .nothing(message)
    return fault(message, node)
  }

  private mutating func selection(
    _ node: ExpressionNode, _ operand: ExpressionNode, _ field: String
  ) -> ExpressionType {
    switch type(of: operand) {
    case .object(let entity):
      guard let type = environment.type(ofField: field, inObject: entity) else {
        let hint = NearestName.hint(for: field, among: environment.fieldNames(inObject: entity))
        return fault("\(entity) has no key '\(field)'\(hint)", node)
      }
      names.meanings[node.id] = .field(index: environment.index(ofField: field, inObject: entity) ?? -1)
      return type
    case .map(let key, let value):
      guard !key.isAssignable(to: .string) else { return value }
      return fault("the keys of \(ExpressionType.map(key, value)) are not strings", node)
    case .dyn: return .dyn
    case let type: return fault("\(type) has no key '\(field)'", node)
    }
  }

  /// `has(operand.field)`.
  private mutating func presence(_ node: ExpressionNode, _ operand: ExpressionNode, _ field: String) -> ExpressionType {
    _ = selection(node, operand, field)
    return .bool
  }

  /// `operand[index]`.
  private mutating func element(
    _ node: ExpressionNode, _ operand: ExpressionNode, _ index: ExpressionNode
  ) -> ExpressionType {
    let (container, key) = (type(of: operand), type(of: index))
    switch container {
    case .list(let element) where key == .int || key == .uint || key == .dyn: return element
    case .map(let expected, let value) where key != .null && key.isComparable(with: expected): return value
    case .dyn: return .dyn
    default: return fault("no such overload: \(container)[\(key)]", node)
    }
  }

  // MARK: Calls

  /// A function with its arguments.
  private mutating func call(
    _ node: ExpressionNode, _ name: String, _ target: ExpressionNode?, _ arguments: [ExpressionNode]
  ) -> ExpressionType {
    if let target, let function = qualified(name, target) {
      return applied(node, function, arguments.map { type(of: $0) }, isMember: false)
    }
    let types = ((target.map { [$0] } ?? []) + arguments).map { type(of: $0) }
    guard let function = FunctionLibrary.function(name, isMember: target != nil) else {
      return unknown(node, name, isMember: target != nil)
    }
    if function.name == "timestamp" { checkTimestamp(arguments) }
    return applied(node, function, types, isMember: target != nil)
  }

  /// Returns the function whose name contains a dot, such as `strings.quote`, unless the name before the dot is a
  /// variable.
  private func qualified(_ name: String, _ target: ExpressionNode) -> FunctionDefinition? {
    guard case .identifier(let space, _) = target.kind else { return nil }
    guard local(space) == nil, environment.type(ofVariable: space) == nil else { return nil }
    return FunctionLibrary.function("\(space).\(name)", isMember: false)
  }

  private mutating func unknown(_ node: ExpressionNode, _ name: String, isMember: Bool) -> ExpressionType {
    let isOther = FunctionLibrary.function(name, isMember: !isMember) != nil
    let hint = !isOther ? "" : isMember ? "; it is called as \(name)(value)" : "; it is called as value.\(name)()"
    let message = "undeclared function '\(name)'\(hint)"
    names.meanings[node.id] = .nothing(message)
    return fault(message, node)
  }

  private mutating func applied(
    _ node: ExpressionNode, _ function: FunctionDefinition, _ types: [ExpressionType], isMember: Bool
  ) -> ExpressionType {
    let shown =
      isMember
      ? "\(types[0]).\(function.name)(\(types.dropFirst().map(\.description).joined(separator: ", ")))"
      : "\(function.name)(\(types.map(\.description).joined(separator: ", ")))"
    let message = "no such overload: \(shown)"
    guard function.overloads.contains(where: { $0.arguments.count == types.count }) else {
      names.meanings[node.id] = .nothing(message)
      return fault(message, node)
    }
    names.meanings[node.id] = .function(function)
    if function.name == "dyn" { return .dyn }
    return Checker.result(function.overloads, types) ?? fault(message, node)
  }

  // MARK: Operators

  /// The operand types of arithmetic, and the types of the results. Lists have a separate rule.
  private static let arithmetic: [BinaryOperator: [FunctionDefinition.Overload]] = {
    func same(_ types: [ExpressionType]) -> [FunctionDefinition.Overload] {
      types.map { FunctionDefinition.Overload(arguments: [$0, $0], result: $0) }
    }
    func overload(_ left: ExpressionType, _ right: ExpressionType, _ result: ExpressionType)
      -> FunctionDefinition.Overload
    { FunctionDefinition.Overload(arguments: [left, right], result: result) }
    let times = [overload(.timestamp, .duration, .timestamp), overload(.duration, .duration, .duration)]
    return [
      .add: same([.int, .uint, .double, .string, .bytes]) + times
        + [overload(.duration, .timestamp, .timestamp), overload(.list(.dyn), .list(.dyn), .list(.dyn))],
      .subtract: same([.int, .uint, .double]) + times + [overload(.timestamp, .timestamp, .duration)],
      .multiply: same([.int, .uint, .double]),
      .divide: same([.int, .uint, .double]),
      .modulo: same([.int, .uint]),
    ]
  }()

  /// `left sign right`.
  private mutating func binary(
    _ node: ExpressionNode, _ sign: BinaryOperator, _ left: ExpressionNode, _ right: ExpressionNode
  ) -> ExpressionType {
    let (first, second) = (type(of: left), type(of: right))
    let mismatch = "no such overload: \(first) \(sign.rawValue) \(second)\(Self.hint(sign, first, second))"
    switch sign {
    case .equal, .notEqual:
      if first.isComparable(with: second) { checkLiterals(sign, left, right) } else { _ = fault(mismatch, node) }
      return .bool
    case .less, .lessOrEqual, .greater, .greaterOrEqual:
      if first.isOrdered(with: second) { checkLiterals(sign, left, right) } else { _ = fault(mismatch, node) }
      return .bool
    case .contained:
      if !isContainer(second, of: first) { _ = fault(mismatch, node) }
      return .bool
    case .add, .subtract, .multiply, .divide, .modulo:
      if sign == .add, case .list(let one) = first, case .list(let other) = second {
        return .list(one.joined(with: other) ?? .dyn)
      }
      return Checker.result(Checker.arithmetic[sign] ?? [], [first, second]) ?? fault(mismatch, node)
    }
  }

  private func isContainer(_ container: ExpressionType, of element: ExpressionType) -> Bool {
    switch container {
    case .list(let type), .map(let type, _): element.isComparable(with: type)
    case .dyn: true
    default: false
    }
  }

  /// Returns the result of the overload that takes `arguments`: `dyn` if more than one might, nil if none does.
  private static func result(_ overloads: [FunctionDefinition.Overload], _ arguments: [ExpressionType])
    -> ExpressionType?
  {
    if let exact = overloads.first(where: { $0.arguments == arguments }) { return exact.result }
    let fitting = overloads.filter { overload in
      overload.arguments.count == arguments.count
        && zip(arguments, overload.arguments).allSatisfy { $0.isAssignable(to: $1) }
    }
    guard let first = fitting.first else { return nil }
    return fitting.allSatisfy { $0.result == first.result } ? first.result : .dyn
  }

  /// `!operand` or `-operand`.
  private mutating func unary(_ node: ExpressionNode, _ sign: UnaryOperator, _ operand: ExpressionNode)
    -> ExpressionType
  {
    let type = type(of: operand)
    switch (sign, type) {
    case (_, .dyn): return sign == .not ? .bool : .dyn
    case (.not, .bool), (.negate, .int), (.negate, .double), (.negate, .duration): return type
    default: return fault("no such overload: \(sign.rawValue)\(type)", node)
    }
  }

  /// Operands of `&&` or `||`.
  private mutating func logical(_ sign: String, _ operands: [ExpressionNode]) -> ExpressionType {
    for operand in operands {
      let type = type(of: operand)
      if !type.isAssignable(to: .bool) { _ = fault("an operand of \(sign) must be a bool, not \(type)", operand) }
    }
    return .bool
  }

  /// `condition ? first : second`.
  private mutating func conditional(
    _ node: ExpressionNode, _ condition: ExpressionNode, _ first: ExpressionNode, _ second: ExpressionNode
  ) -> ExpressionType {
    let types = [condition, first, second].map { type(of: $0) }
    if !types[0].isAssignable(to: .bool) {
      _ = fault("the condition of ?: must be a bool, not \(types[0])", condition)
    }
    return types[1].joined(with: types[2])
      ?? fault("no such overload: \(types[0]) ? \(types[1]) : \(types[2])", node)
  }

  // MARK: Literals

  // Comparisons that can never hold, because one side is a literal that the other side can never be.

  /// Records a fault, at the literal, if a comparison of two operands can never hold.
  private mutating func checkLiterals(_ sign: BinaryOperator, _ left: ExpressionNode, _ right: ExpressionNode) {
    checkLiteral(sign, left, literal: right)
    checkLiteral(sign, right, literal: left)
  }

  private mutating func checkLiteral(_ sign: BinaryOperator, _ operand: ExpressionNode, literal: ExpressionNode) {
    guard let value = Self.constant(literal), !value.isNull else { return }
    let isEquality = sign == .equal || sign == .notEqual
    var mistake: String?
    for compared in compared(operand) {
      // One source that can be equal is enough.
      guard let found = environment.mistake(comparing: compared, with: value, isEquality: isEquality) else { return }
      mistake = mistake ?? found
    }
    if let mistake { _ = fault(mistake, literal) }
  }

  /// Returns all that is known of an operand, for each thing that it may be; none if only its type is known.
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

  /// Returns the variables and keys that an operand's value is read from; none if any part of it is computed.
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

  /// Returns the sources of several operands, of which one is the value. Literal nulls do not count.
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

  /// Returns the sources of the members of a list; none if they are computed.
  private func members(of list: ExpressionNode) -> [ComparedValue] {
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

  /// Returns the constant value of a node: a literal, or the instant that a literal names; nil for any other node.
  private static func constant(_ node: ExpressionNode) -> ExpressionValue? {
    switch node.kind {
    case .literal(let literal): return literal
    case .call("timestamp", target: nil, let arguments) where arguments.count == 1:
      guard case .literal(.string(let text)) = arguments[0].kind else { return nil }
      return ExpressionTimestamp(parsing: text).map(ExpressionValue.timestamp)
    default: return nil
    }
  }

  /// Records a fault if `timestamp("…")` does not name an instant and the environment asks for that check.
  private mutating func checkTimestamp(_ arguments: [ExpressionNode]) {
    guard environment.refusesBadTimestamps, arguments.count == 1, case .literal(.string(let text)) = arguments[0].kind,
      ExpressionTimestamp(parsing: text) == nil
    else { return }
    _ = fault("\(ExpressionValue.string(text).debugText) is not a timestamp such as 2010-03-01T12:00:00Z", arguments[0])
  }

  /// Returns advice on operands that an operator does not take; an empty text if there is none.
  private static func hint(_ sign: BinaryOperator, _ left: ExpressionType, _ right: ExpressionType) -> String {
    if left.isNumber, right.isNumber, sign != .modulo, sign != .contained {
      let other = left == .double ? right : left
      return left == .double || right == .double
        ? "; write double(…) around the \(other)" : "; write int(…) around the uint"
    }
    guard left == .timestamp && right == .string || left == .string && right == .timestamp else { return "" }
    return "; write timestamp(…) around the string"
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

/// The checker's results for the nodes of an expression, by their numbers.
struct NameTable: Sendable {
  /// The type of each node.
  var types: [ExpressionType]
  /// The meanings of names.
  var meanings: [Int: NameMeaning] = [:]

  init(nodeCount: Int) { types = Array(repeating: .dyn, count: nodeCount) }
}

/// The meaning of a name in an expression.
enum NameMeaning: Sendable {
  /// A variable of the environment, whose name may contain dots, and its number or -1.
  case variable(String, index: Int)
  /// A comprehension's variable, by its number.
  case local(Int)
  /// A type as a value.
  case type(String)
  /// The key of an object with this number or -1.
  case field(index: Int)
  /// A function of the library.
  case function(FunctionDefinition)
  /// The number of the variable that a comprehension binds.
  case binds(Int)
  /// Nothing: evaluation fails with this message.
  case nothing(String)
}
