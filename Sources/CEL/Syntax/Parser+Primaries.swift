extension Parser {
  // What calls itself over others for nested expressions is cut into small functions: their frames lie on one stack.

  /// Whether a selection, an index or a call is next.
  var hasMember: Bool { token.kind == .sign(".") || token.kind == .sign("[") || token.kind == .sign("{") }

  /// Selections, indexes and calls after an operand.
  mutating func member(_ operand: ExpressionNode) throws(ExpressionError) -> ExpressionNode {
    var node = operand
    while hasMember {
      if token.kind == .sign(".") {
        node = try selection(node)
      } else if token.kind == .sign("[") {
        node = try indexed(node)
      } else {
        guard isName(node) else { return node }
        throw fault("messages cannot be made here", token.offset)
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

  /// A dot and what is after it: a key, or a function with its arguments.
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
    case .identifier(let name) where !Parser.isKeyword(name):
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

  /// An operand by itself.
  mutating func primary() throws(ExpressionError) -> ExpressionNode {
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

  /// A constant or a variable; nil before a function's name.
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

  /// A function without a receiver, or `has`.
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

  /// Expressions between commas, up to a closing sign. A list may have a comma at its end, a call not.
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
}
