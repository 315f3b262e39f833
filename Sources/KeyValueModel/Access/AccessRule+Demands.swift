import CEL

extension AccessRule {
  /// The stored keys that the rule compares with what an identity is, in a way that makes it false for all other
  /// values: `owner == identity.sub`, by itself, joined to other conditions by `&&`, or to such as this identity does
  /// not meet by `||`.
  func equalities(of entity: Entity, for identity: ExpressionValue) -> [(key: Int, value: Value)] {
    KeyExpression.equalities(in: root, entity) { node in
      KeyExpression.constant(node) ?? self.constant(node, for: identity)
    }
  }

  /// What the rule comes to for an identity, whatever the object is; nil where that depends on the object.
  ///
  /// What one side of `&&` or `||` decides stands, whatever the other does, errors included (CEL language definition,
  /// Logical Operators): `"teller" in identity.roles || owner == identity.sub` is asked of no object for a teller.
  func outcome(for identity: ExpressionValue) -> Bool? { outcome(of: root, for: identity) }

  private func outcome(of node: ExpressionNode, for identity: ExpressionValue) -> Bool? {
    if let value = constant(node, for: identity) {
      if case .bool(true) = value { return true }
      return false
    }
    switch node.kind {
    case .all(let operands):
      let outcomes = operands.map { outcome(of: $0, for: identity) }
      return outcomes.contains(false) ? false : outcomes.contains(nil) ? nil : true
    case .any(let operands):
      let outcomes = operands.map { outcome(of: $0, for: identity) }
      return outcomes.contains(true) ? true : outcomes.contains(nil) ? nil : false
    default: return nil
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
