/// Parses an expression (CEL language definition, Syntax). The nesting limit bounds recursion, so that a text cannot
/// overflow the stack.
struct Parser {
  /// Words that cannot be names, reserved for languages that CEL is embedded in.
  private static let reserved: Set<String> = [
    "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package",
    "namespace", "return", "var", "void", "while",
  ]
  /// Words of the language, which cannot be keys either.
  private static let keywords: Set<String> = ["in", "true", "false", "null"]

  private let limits: ExpressionLimits
  private var lexer: Lexer
  /// The next token.
  private var token: Token
  private(set) var nodeCount = 0
  private var nesting = 0

  init(_ text: String, _ limits: ExpressionLimits) throws(ExpressionError) {
    guard text.utf8.count <= limits.textBytes else {
      throw ExpressionError("the expression has more than \(limits.textBytes) bytes", at: 0, in: text)
    }
    self.limits = limits
    lexer = Lexer(text)
    token = try lexer.next()
  }

  /// Parses the whole text.
  mutating func parse() throws(ExpressionError) -> ExpressionNode {
    let root = try expression()
    guard token.kind == .end else { throw unexpected() }
    return root
  }

  /// Parses `condition ? first : second`, or a simpler expression.
  private mutating func expression() throws(ExpressionError) -> ExpressionNode {
    try enter()
    defer { nesting -= 1 }
    let condition = try operation()
    return token.kind == .sign("?") ? try conditional(condition) : condition
  }

  private mutating func conditional(_ condition: ExpressionNode) throws(ExpressionError) -> ExpressionNode {
    let offset = token.offset
    try advance()
    let first = try operation()
    try expect(":")
    let second = try expression()
    return try make(.conditional(condition, first, second), offset)
  }

  /// Counts one more level of nesting.
  private mutating func enter() throws(ExpressionError) {
    nesting += 1
    guard nesting <= limits.nestingDepth else {
      throw fault("the expression is nested deeper than \(limits.nestingDepth) levels", token.offset)
    }
  }

  /// Makes a node with the next number. Throws if the tree becomes too high or too large.
  private mutating func make(_ kind: ExpressionNode.Kind, _ offset: Int) throws(ExpressionError) -> ExpressionNode {
    let node = ExpressionNode(id: nodeCount, offset: offset, kind: kind)
    nodeCount += 1
    guard node.height <= limits.treeHeight else {
      throw fault("the expression's tree is higher than \(limits.treeHeight) levels", offset)
    }
    guard nodeCount <= limits.nodes else { throw fault("the expression has more than \(limits.nodes) nodes", offset) }
    return node
  }

  private mutating func advance() throws(ExpressionError) { token = try lexer.next() }

  /// True if a parenthesis follows the next token.
  private var nextIsCall: Bool {
    var ahead = lexer
    return (try? ahead.next())?.kind == .sign("(")
  }

  /// Takes the sign if it is next. Returns true if it was.
  private mutating func take(_ sign: String) throws(ExpressionError) -> Bool {
    guard token.kind == .sign(sign) else { return false }
    try advance()
    return true
  }

  private mutating func expect(_ sign: String) throws(ExpressionError) {
    guard try take(sign) else { throw fault("expected '\(sign)' instead of \(token.text)", token.offset) }
  }

  private func fault(_ message: String, _ offset: Int) -> ExpressionError { lexer.fault(message, offset) }

  private func unexpected() -> ExpressionError {
    switch token.kind {
    case .end: fault("the expression ends too early", token.offset)
    case .sign("="): fault("'=' is not an operator; use '=='", token.offset)
    default: fault("unexpected \(token.text)", token.offset)
    }
  }

  /// Returns true if `name` cannot be the name of a variable or a function.
  private static func isReserved(_ name: String) -> Bool { reserved.contains(name) || keywords.contains(name) }

  // MARK: Operators

  /// The precedence of operators, from 0 for the lowest.
  private static let levels: [String: Int] = [
    "||": 0, "&&": 1, "==": 2, "!=": 2, "<": 2, "<=": 2, ">": 2, ">=": 2, "in": 2, "+": 3, "-": 3, "*": 4, "/": 4,
    "%": 4,
  ]

  /// An operator that waits for its last operand.
  private struct Pending {
    let sign: String
    let level: Int
    let offset: Int
    /// One operand, or more if `&&` or `||` joins them.
    var operands: [ExpressionNode]

    /// Returns true if the operator `sign` after its last operand joins one more.
    func isJoined(by sign: String?) -> Bool { level < 2 && sign == self.sign }
  }

  /// Parses operands with operators between them, or one operand. Operators wait in a list rather than on the stack.
  private mutating func operation() throws(ExpressionError) -> ExpressionNode {
    var pending: [Pending] = []
    var operand = try unary()
    while try push(&operand, &pending) { operand = try unary() }
    return operand
  }

  /// Completes the operators of which `operand` is the last operand, and takes the next operator. Returns true if there
  /// is one.
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

  /// Returns the result of the operators that bind at least as closely as the next one, with `operand` as their last.
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

  /// Parses `!a`, `-a`, or a simpler expression.
  private mutating func unary() throws(ExpressionError) -> ExpressionNode {
    if token.kind == .sign("!") || token.kind == .sign("-") { return try signed() }
    let first = try primary()
    return hasMember ? try member(first) : first
  }

  /// Parses signs with their operand. A minus before a number is part of the number.
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

  // MARK: Operands

  // Functions that call one another recursively for nested expressions are small, because their frames are on one
  // stack.

  /// True if a selection, an index or a call is next.
  private var hasMember: Bool { token.kind == .sign(".") || token.kind == .sign("[") || token.kind == .sign("{") }

  /// Parses selections, indexes and calls after an operand.
  private mutating func member(_ operand: ExpressionNode) throws(ExpressionError) -> ExpressionNode {
    var node = operand
    while hasMember {
      if token.kind == .sign(".") {
        node = try selection(node)
      } else if token.kind == .sign("[") {
        node = try indexed(node)
      } else {
        guard isName(node) else { return node }
        throw fault("message literals are not supported", token.offset)
      }
    }
    return node
  }

  private mutating func indexed(_ operand: ExpressionNode) throws(ExpressionError) -> ExpressionNode {
    let offset = token.offset
    try advance()
    let index = try expression()
    try expect("]")
    return try make(.index(operand, index), offset)
  }

  private func isName(_ node: ExpressionNode) -> Bool {
    switch node.kind {
    case .identifier: true
    case .select(let operand, _): isName(operand)
    default: false
    }
  }

  /// Parses a dot and what follows: a key, or a function with its arguments.
  private mutating func selection(_ operand: ExpressionNode) throws(ExpressionError) -> ExpressionNode {
    try advance()
    let (offset, isQuoted) = (token.offset, token.isQuoted)
    let name = try key()
    guard !isQuoted, token.kind == .sign("(") else { return try make(.select(operand, field: name), offset) }
    return try memberCall(name, operand, offset)
  }

  private mutating func key() throws(ExpressionError) -> String {
    switch token.kind {
    case .quoted(let name):
      try advance()
      return name
    case .identifier(let name) where !Parser.keywords.contains(name):
      try advance()
      return name
    case .sign("?"): throw fault("optional selection is not supported", token.offset)
    default: throw fault("expected a key instead of \(token.text)", token.offset)
    }
  }

  private mutating func memberCall(
    _ name: String, _ operand: ExpressionNode, _ offset: Int
  ) throws(ExpressionError) -> ExpressionNode {
    try advance()
    let arguments = try list(until: ")")
    if let macro = try macro(name, operand, arguments, offset) { return macro }
    return try make(.call(name, target: operand, arguments: arguments), offset)
  }

  /// Parses an operand by itself.
  private mutating func primary() throws(ExpressionError) -> ExpressionNode {
    if token.kind == .sign("(") { return try parenthesized() }
    if token.kind == .sign("[") { return try listLiteral() }
    if token.kind == .sign("{") { return try mapLiteral() }
    if let leaf = try leaf() { return leaf }
    return try globalCall()
  }

  private mutating func parenthesized() throws(ExpressionError) -> ExpressionNode {
    try advance()
    let inner = try expression()
    try expect(")")
    return inner
  }

  private mutating func listLiteral() throws(ExpressionError) -> ExpressionNode {
    let offset = token.offset
    try advance()
    return try make(.list(list(until: "]")), offset)
  }

  private mutating func mapLiteral() throws(ExpressionError) -> ExpressionNode {
    let offset = token.offset
    try advance()
    return try make(.map(entries()), offset)
  }

  /// Parses a constant or a variable; nil before a function's name.
  private mutating func leaf() throws(ExpressionError) -> ExpressionNode? {
    let offset = token.offset
    if let value = try literal() { return try make(.literal(value), offset) }
    let isAbsolute = try take(".")
    guard case .identifier(let name) = token.kind else { throw unexpected() }
    if !isAbsolute, let constant = Parser.constant(name) {
      try advance()
      return try make(.literal(constant), offset)
    }
    guard !Parser.isReserved(name) else { throw fault("'\(name)' is a reserved word", token.offset) }
    guard nextIsCall else {
      try advance()
      return try make(.identifier(name, isAbsolute: isAbsolute), offset)
    }
    return nil
  }

  /// Parses a function without a receiver, or `has`.
  private mutating func globalCall() throws(ExpressionError) -> ExpressionNode {
    let offset = token.offset
    guard case .identifier(let name) = token.kind else { throw unexpected() }
    try advance()
    try advance()
    let arguments = try list(until: ")")
    if name == "has" { return try has(arguments, offset) }
    return try make(.call(name, target: nil, arguments: arguments), offset)
  }

  private mutating func literal() throws(ExpressionError) -> ExpressionValue? {
    let value: ExpressionValue
    switch token.kind {
    case .int(let magnitude):
      guard let number = Int64(exactly: magnitude) else {
        throw fault("the integer \(magnitude) is out of range", token.offset)
      }
      value = .int(number)
    case .uint(let number): value = .uint(number)
    case .double(let number): value = .double(number)
    case .string(let text): value = .string(text)
    case .bytes(let bytes): value = .bytes(bytes)
    default: return nil
    }
    try advance()
    return value
  }

  private static func constant(_ name: String) -> ExpressionValue? {
    switch name {
    case "true": .bool(true)
    case "false": .bool(false)
    case "null": .null
    default: nil
    }
  }

  /// Parses expressions between commas, up to a closing sign. A list may have a comma at its end, a call may not.
  private mutating func list(until end: String) throws(ExpressionError) -> [ExpressionNode] {
    var items: [ExpressionNode] = []
    while token.kind != .sign(end) {
      items.append(try expression())
      guard try take(",") else { break }
      if end == ")", token.kind == .sign(end) { throw unexpected() }
    }
    try expect(end)
    return items
  }

  private mutating func entries() throws(ExpressionError) -> [(key: ExpressionNode, value: ExpressionNode)] {
    var entries: [(key: ExpressionNode, value: ExpressionNode)] = []
    while token.kind != .sign("}") {
      let key = try expression()
      try expect(":")
      entries.append((key, try expression()))
      guard try take(",") else { break }
    }
    try expect("}")
    return entries
  }

  // MARK: Macros

  /// `has(a.b)`.
  private mutating func has(_ arguments: [ExpressionNode], _ offset: Int) throws(ExpressionError) -> ExpressionNode {
    guard arguments.count == 1, case .select(let operand, let field) = arguments[0].kind else {
      throw fault("has() takes one selection, such as has(a.b)", arguments.first?.offset ?? offset)
    }
    return try make(.has(operand, field: field), offset)
  }

  /// Returns the macro that a call with a receiver is; nil if it is an ordinary call. Throws if the variable of a macro
  /// is not a name.
  private mutating func macro(
    _ name: String, _ range: ExpressionNode, _ arguments: [ExpressionNode], _ offset: Int
  ) throws(ExpressionError) -> ExpressionNode? {
    let function = name == "existsOne" ? .existsOne : Comprehension.Function(rawValue: name)
    guard let function, arguments.count == 2 || (arguments.count == 3 && function == .map) else { return nil }
    guard case .identifier(let variable, isAbsolute: false) = arguments[0].kind else {
      throw fault("the first argument of \(name)() must be the name of a variable", arguments[0].offset)
    }
    let isMap = function == .map
    let comprehension = Comprehension(
      function: function, range: range, variable: variable,
      predicate: isMap && arguments.count == 2 ? nil : arguments[1],
      transform: isMap ? arguments[arguments.count - 1] : nil)
    return try make(.comprehension(comprehension), offset)
  }
}
