/// A node of the syntax tree. Macros have their own kind of node, so that analysis sees them.
package final class ExpressionNode: Sendable {
  /// The kind of a node.
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
  /// The start in the text, in Unicode scalars; for an operator, that of its sign.
  package let offset: Int
  /// The kind of the node.
  package let kind: Kind
  /// The number of levels of nodes from here down, 1 for a leaf.
  package let height: Int

  /// Creates a node with the children of `kind`.
  init(id: Int, offset: Int, kind: Kind) {
    (self.id, self.offset, self.kind) = (id, offset, kind)
    height = 1 + (kind.children.map(\.height).max() ?? 0)
  }

  /// Returns the same node with other children, each made from the one in its place.
  func replacingChildren(_ replacement: (ExpressionNode) -> ExpressionNode) -> ExpressionNode {
    ExpressionNode(id: id, offset: offset, kind: kind.replacingChildren(replacement))
  }

  /// True if the object itself, `this`, is named anywhere in it.
  package var namesRoot: Bool {
    if case .identifier(Expression.rootVariable, _) = kind { return true }
    return kind.children.contains(where: \.namesRoot)
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

/// An operator in front of its operand.
package enum UnaryOperator: String, Sendable {
  /// Logical not.
  case not = "!"
  /// The opposite number.
  case negate = "-"
}

/// An operator between two operands, other than `&&` and `||`.
package enum BinaryOperator: String, Sendable {
  case add = "+"
  case subtract = "-"
  case multiply = "*"
  case divide = "/"
  case modulo = "%"
  case equal = "=="
  case notEqual = "!="
  case less = "<"
  case lessOrEqual = "<="
  case greater = ">"
  case greaterOrEqual = ">="
  case contained = "in"
}

/// A macro that binds a variable to each element of a range (CEL language definition, Macros).
package struct Comprehension: Sendable {
  /// The kind of a macro.
  package enum Function: String, Sendable {
    /// True if the predicate holds for all.
    case all
    /// True if the predicate holds for any.
    case exists
    /// True if the predicate holds for exactly one.
    case existsOne = "exists_one"
    /// The transform of all elements, or of those for which the predicate holds.
    case map
    /// The elements for which the predicate holds.
    case filter
  }

  /// The macro.
  package let function: Function
  /// The visited values: a list's elements or a map's keys.
  package let range: ExpressionNode
  /// The name of the variable.
  package let variable: String
  /// The condition; only `map` may have none.
  package let predicate: ExpressionNode?
  /// The result of `map` for each element; nil for other macros.
  package let transform: ExpressionNode?
}
