import Expressions

extension AccessRule {
  /// The stored keys that the rule compares with what an identity is, in a way that makes it false for all other
  /// values: `owner == identity.sub`, by itself, joined to other conditions by `&&`, or to such as this identity does
  /// not meet by `||`.
  func equalities(of entity: Entity, for identity: ExpressionValue) -> [(key: Int, value: Value)] {
    KeyExpression.equalities(in: root, entity) { node in
      KeyExpression.constant(node) ?? self.constant(node, for: identity)
    }
  }

  /// The value of a part that sees nothing but who asks; false where it has none, since the rule then fails or goes on
  /// without it.
  private func constant(_ node: ExpressionNode, for identity: ExpressionValue) -> ExpressionValue? {
    guard Self.seesIdentityAlone(node) else { return nil }
    return value(of: node, for: identity)
  }

  private static func seesIdentityAlone(_ node: ExpressionNode) -> Bool {
    switch node.kind {
    case .identifier: node.isIdentity
    // A variable of its own may have any name.
    case .comprehension, .collectionFunction: false
    default: node.kind.children.allSatisfy(seesIdentityAlone)
    }
  }
}
