extension ExpressionNode {
  /// Whether the object itself, `this`, is named anywhere in it.
  package var namesRoot: Bool {
    if case .identifier(Expression.rootVariable, _) = kind { return true }
    return kind.children.contains(where: \.namesRoot)
  }
}
