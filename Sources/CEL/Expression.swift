/// An expression that has been parsed and not yet been checked.
package struct Expression: Sendable {
  /// The name of the object that an expression belongs to: `this.a` is `a`.
  package static let rootVariable = "this"

  /// The text it was read from.
  package let text: String
  /// The top of its syntax tree.
  package let root: ExpressionNode
  /// The number of nodes that were made for the tree. Their ids are less than it.
  let nodeCount: Int

  /// Parses the text of an expression (CEL language definition, Syntax). Throws the position and the kind of the fault,
  /// or which of `limits` the text exceeds.
  package init(parsing text: String, limits: ExpressionLimits = ExpressionLimits()) throws(ExpressionError) {
    self.text = text
    var parser = try Parser(text, limits)
    root = try parser.parse()
    nodeCount = parser.nodeCount
    guard ValueNesting.depth(of: root) <= limits.nestingDepth else {
      throw ExpressionError("the expression makes lists that are nested too deep", at: root.offset, in: text)
    }
  }

  /// Resolves the types and the names of the expression in `environment`. Throws the first fault: a name that is not
  /// declared, a key that an entity does not have, operands that no operator takes.
  package func checked(in environment: any ExpressionEnvironment) throws(ExpressionError) -> CheckedExpression {
    try CheckedExpression(self, in: environment, isLenient: false)
  }

  /// Resolves the names of the expression in `environment`, and leaves all faults to evaluation: for values of unknown
  /// types. Throws only for a pattern that is not a regular expression.
  package func unchecked(in environment: any ExpressionEnvironment) throws(ExpressionError) -> CheckedExpression {
    try CheckedExpression(self, in: environment, isLenient: true)
  }
}

/// Limits for the size of an expression and the cost of its evaluation. Clients send expressions, so everything is
/// limited; an expression that exceeds a limit is refused or stopped with an error that says so.
package struct ExpressionLimits: Sendable, Equatable {
  /// The maximum number of UTF-8 bytes in an expression's text.
  package var textBytes = 16_384
  /// The maximum nesting depth of parentheses, brackets, braces, calls and conditionals in the text.
  package var nestingDepth = 64
  /// The maximum height of the syntax tree: a chain such as `a + b + c` or `a.b.c` is as high as it is long. Operands
  /// of `&&` and of `||` are side by side and count once.
  package var treeHeight = 128
  /// The maximum number of nodes in the syntax tree.
  package var nodes = 8_192
  /// The maximum cost of one evaluation: see `EvaluationBudget`.
  package var cost = 1_000_000
  /// The maximum depth of evaluation in total, including expressions that are evaluated for their values within others.
  package var evaluationDepth = 384

  /// The defaults.
  package init() {}
}

/// The reason why a text is not an expression that can be evaluated: it does not parse, or does not fit the
/// environment's types.
package struct ExpressionError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The start of the fault, in Unicode scalars from the start of the text, from 0.
  package let offset: Int
  /// The line of the fault, from 1.
  package let line: Int
  /// The column of the fault within its line, from 1, in Unicode scalars.
  package let column: Int
  /// The description of the fault, without the position.
  package let message: String

  /// Creates the fault `message` at the scalar `offset` of `text`.
  package init(_ message: String, at offset: Int, in text: String) {
    var line = 1
    var column = 1
    for scalar in text.unicodeScalars.prefix(offset) {
      if scalar == "\n" {
        line += 1
        column = 1
      } else {
        column += 1
      }
    }
    (self.offset, self.line, self.column, self.message) = (offset, line, column, message)
  }

  /// `line:column: message`.
  package var description: String { "\(line):\(column): \(message)" }
}

/// The nesting depth of lists and maps that an expression makes. `x.map(y, [[y]])` nests by two, and so does the next
/// one that is applied to it: a value that is nested too deep could not be released on a small stack.
private struct ValueNesting {
  private var variables: [String: Int] = [:]

  /// Returns the depth of the value of `root`, beyond that of the values that it is given.
  static func depth(of root: ExpressionNode) -> Int {
    var nesting = ValueNesting()
    var deepest = 0
    _ = nesting.depth(of: root, &deepest)
    return deepest
  }

  private mutating func depth(of node: ExpressionNode, _ deepest: inout Int) -> Int {
    let depth = newDepth(of: node, &deepest)
    deepest = max(deepest, depth)
    return depth
  }

  private mutating func newDepth(of node: ExpressionNode, _ deepest: inout Int) -> Int {
    switch node.kind {
    case .identifier(let name, _): return variables[name] ?? 0
    case .comprehension(let macro): return comprehension(macro, &deepest)
    default:
      var most = 0
      for child in node.kind.children { most = max(most, depth(of: child, &deepest)) }
      switch node.kind {
      case .list, .map: return most + 1
      case .index, .select: return max(0, most - 1)
      case .has, .unary, .all, .any: return 0
      default: return most
      }
    }
  }

  private mutating func comprehension(_ macro: Comprehension, _ deepest: inout Int) -> Int {
    let range = depth(of: macro.range, &deepest)
    let hidden = variables[macro.variable]
    variables[macro.variable] = max(0, range - 1)
    defer { variables[macro.variable] = hidden }
    if let predicate = macro.predicate { _ = depth(of: predicate, &deepest) }
    let transformed = macro.transform.map { depth(of: $0, &deepest) } ?? 0
    switch macro.function {
    case .map: return transformed + 1
    case .filter: return range
    case .all, .exists, .existsOne: return 0
    }
  }
}
