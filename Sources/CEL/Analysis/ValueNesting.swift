/// How deep lists and maps that an expression makes may be nested. `x.map(y, [[y]])` nests by two, and so does the next
/// one that is applied to it: a value that is nested too deep could not be released on a small stack.
struct ValueNesting {
  private var variables: [String: Int] = [:]

  /// The depth of the value of `root`, beyond that of values which it is given.
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
