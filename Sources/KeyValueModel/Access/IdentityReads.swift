import CEL

/// What rules read of who asks: identities that have the same of it may do the same.
struct IdentityReads: Hashable, Sendable {
  /// The claims that are read by their names.
  private(set) var claims: Set<String> = []
  /// Whether all claims are read, as by a function of the whole identity.
  private(set) var readsAll = false

  init() {}

  /// What an expression reads. Whether there is an identity at all is never left out.
  init(of root: ExpressionNode) { collect(root) }

  mutating func merge(_ other: IdentityReads) {
    claims.formUnion(other.claims)
    readsAll = readsAll || other.readsAll
  }

  /// The claims that are read, of those that there are.
  func used(of claims: JSONObject) -> JSONObject {
    if readsAll { return claims }
    var used = JSONObject()
    for name in self.claims.sorted() {
      if let value = claims[name] { used[name] = value }
    }
    return used
  }

  private mutating func collect(_ node: ExpressionNode) {
    switch node.kind {
    case .identifier(AccessRule.identityName, _): readsAll = true
    case .select(let operand, let field) where operand.isIdentity: claims.insert(field)
    case .has(let operand, let field) where operand.isIdentity: claims.insert(field)
    case .index(let operand, let index) where operand.isIdentity && index.text != nil:
      index.text.map { _ = claims.insert($0) }
    case .binary(.equal, let left, let right), .binary(.notEqual, let left, let right):
      // Whether there is one is known of each.
      if left.isIdentity, right.isNull { return }
      if right.isIdentity, left.isNull { return }
      collect(left)
      collect(right)
    default: node.kind.children.forEach { collect($0) }
    }
  }
}

extension ExpressionNode {
  /// Whether it is the name of who asks.
  var isIdentity: Bool {
    if case .identifier(AccessRule.identityName, _) = kind { true } else { false }
  }

  fileprivate var isNull: Bool {
    if case .literal(.null) = kind { true } else { false }
  }

  fileprivate var text: String? {
    if case .literal(.string(let text)) = kind { text } else { nil }
  }
}
