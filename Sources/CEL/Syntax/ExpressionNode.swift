/// A node of the syntax tree. Macros are nodes of their own, so that analysis sees them.
package final class ExpressionNode: Sendable {
  /// What a node is.
  package indirect enum Kind: Sendable {
    /// A constant.
    case literal(ExpressionValue)
    /// A name; one with a dot in front is never a comprehension's variable.
    case identifier(String, isAbsolute: Bool)
    /// `operand.field`.
    case select(ExpressionNode, field: String)
    /// `has(operand.field)`.
    case has(ExpressionNode, field: String)
    /// `operand[index]`.
    case index(ExpressionNode, ExpressionNode)
    /// A function with its receiver, if it is written with one.
    case call(String, target: ExpressionNode?, arguments: [ExpressionNode])
    /// `!a` or `-a`.
    case unary(UnaryOperator, ExpressionNode)
    /// An operator between two operands other than `&&` and `||`.
    case binary(BinaryOperator, ExpressionNode, ExpressionNode)
    /// Operands joined by `&&`.
    case all([ExpressionNode])
    /// Operands joined by `||`.
    case any([ExpressionNode])
    /// `condition ? first : second`.
    case conditional(ExpressionNode, ExpressionNode, ExpressionNode)
    /// `[a, b]`.
    case list([ExpressionNode])
    /// `{a: b}`.
    case map([(key: ExpressionNode, value: ExpressionNode)])
    /// A macro over the elements of a list or the keys of a map.
    case comprehension(Comprehension)
    /// The value of the collection function with this number, which the caller gives.
    case collectionFunction(Int)
  }

  /// The number of the node in its expression, from 0.
  package let id: Int
  /// Where it begins in the text, in Unicode scalars; an operator's is that of its sign.
  package let offset: Int
  /// What it is.
  package let kind: Kind
  /// How many levels of nodes there are from here down, 1 for a leaf.
  package let height: Int

  /// A node over its children.
  init(id: Int, offset: Int, kind: Kind) {
    (self.id, self.offset, self.kind) = (id, offset, kind)
    height = 1 + (kind.children.map(\.height).max() ?? 0)
  }
}

extension ExpressionNode.Kind {
  /// The nodes directly below, in the order of the text.
  package var children: [ExpressionNode] {
    switch self {
    case .literal, .identifier, .collectionFunction: []
    case .select(let operand, _), .has(let operand, _), .unary(_, let operand): [operand]
    case .index(let left, let right), .binary(_, let left, let right): [left, right]
    case .call(_, let target, let arguments): (target.map { [$0] } ?? []) + arguments
    case .all(let operands), .any(let operands), .list(let operands): operands
    case .conditional(let condition, let first, let second): [condition, first, second]
    case .map(let entries): entries.flatMap { [$0.key, $0.value] }
    case .comprehension(let macro): [macro.range] + [macro.predicate, macro.transform].compactMap { $0 }
    }
  }
}
