extension ExpressionNode {
  /// The same node over other children, each made from the one in its place.
  func replacingChildren(_ replacement: (ExpressionNode) -> ExpressionNode) -> ExpressionNode {
    ExpressionNode(id: id, offset: offset, kind: kind.replacingChildren(replacement))
  }
}

extension ExpressionNode.Kind {
  fileprivate func replacingChildren(_ replacement: (ExpressionNode) -> ExpressionNode) -> ExpressionNode.Kind {
    switch self {
    case .literal, .identifier, .collectionFunction: self
    case .select(let operand, let field): .select(replacement(operand), field: field)
    case .has(let operand, let field): .has(replacement(operand), field: field)
    case .index(let operand, let index): .index(replacement(operand), replacement(index))
    case .call(let name, let target, let arguments):
      .call(name, target: target.map(replacement), arguments: arguments.map(replacement))
    case .unary(let sign, let operand): .unary(sign, replacement(operand))
    case .binary(let sign, let left, let right): .binary(sign, replacement(left), replacement(right))
    case .all(let operands): .all(operands.map(replacement))
    case .any(let operands): .any(operands.map(replacement))
    case .conditional(let condition, let first, let second):
      .conditional(replacement(condition), replacement(first), replacement(second))
    case .list(let elements): .list(elements.map(replacement))
    case .map(let entries): .map(entries.map { (key: replacement($0.key), value: replacement($0.value)) })
    case .comprehension(let macro):
      .comprehension(
        Comprehension(
          function: macro.function, range: replacement(macro.range), variable: macro.variable,
          predicate: macro.predicate.map(replacement), transform: macro.transform.map(replacement)))
    }
  }
}
