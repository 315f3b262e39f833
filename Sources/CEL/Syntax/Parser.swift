/// Reads an expression (CEL language definition, Syntax). Recursion is bounded by the limit of nesting, so that a text
/// cannot overflow the stack.
struct Parser {
  /// Words that cannot be names, kept for languages that CEL is embedded in.
  private static let reserved: Set<String> = [
    "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package",
    "namespace", "return", "var", "void", "while",
  ]
  /// Words of the language, which cannot be keys either.
  private static let keywords: Set<String> = ["in", "true", "false", "null"]

  let limits: ExpressionLimits
  private var lexer: Lexer
  /// The next token.
  private(set) var token: Token
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

  /// The whole text.
  mutating func parse() throws(ExpressionError) -> ExpressionNode {
    let root = try expression()
    guard token.kind == .end else { throw unexpected() }
    return root
  }

  /// `condition ? first : second`, or less.
  mutating func expression() throws(ExpressionError) -> ExpressionNode {
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
  mutating func enter() throws(ExpressionError) {
    nesting += 1
    guard nesting <= limits.nestingDepth else {
      throw fault("the expression is nested deeper than \(limits.nestingDepth) levels", token.offset)
    }
  }

  /// A node with the next number. Throws when the tree becomes too high or too large.
  mutating func make(_ kind: ExpressionNode.Kind, _ offset: Int) throws(ExpressionError) -> ExpressionNode {
    let node = ExpressionNode(id: nodeCount, offset: offset, kind: kind)
    nodeCount += 1
    guard node.height <= limits.treeHeight else {
      throw fault("the expression's tree is higher than \(limits.treeHeight) levels", offset)
    }
    guard nodeCount <= limits.nodes else { throw fault("the expression has more than \(limits.nodes) nodes", offset) }
    return node
  }

  mutating func advance() throws(ExpressionError) { token = try lexer.next() }

  /// Whether a parenthesis is after the next token.
  var nextIsCall: Bool {
    var ahead = lexer
    return (try? ahead.next())?.kind == .sign("(")
  }

  /// Takes the sign when it is next.
  mutating func take(_ sign: String) throws(ExpressionError) -> Bool {
    guard token.kind == .sign(sign) else { return false }
    try advance()
    return true
  }

  mutating func expect(_ sign: String) throws(ExpressionError) {
    guard try take(sign) else { throw fault("expected '\(sign)' instead of \(token.text)", token.offset) }
  }

  func fault(_ message: String, _ offset: Int) -> ExpressionError { lexer.fault(message, offset) }

  func unexpected() -> ExpressionError {
    switch token.kind {
    case .end: fault("the expression ends too early", token.offset)
    case .sign("="): fault("'=' is not an operator; use '=='", token.offset)
    default: fault("unexpected \(token.text)", token.offset)
    }
  }

  /// Whether `name` cannot stand for a variable or a function.
  static func isReserved(_ name: String) -> Bool { reserved.contains(name) || keywords.contains(name) }

  /// Whether `name` cannot be a key after a dot.
  static func isKeyword(_ name: String) -> Bool { keywords.contains(name) }
}
