/// What the checker found out about the nodes of an expression, by their numbers.
struct NameTable: Sendable {
  /// The type of each node.
  var types: [ExpressionType]
  /// What names stand for.
  var meanings: [Int: NameMeaning] = [:]

  init(nodeCount: Int) { types = Array(repeating: .dyn, count: nodeCount) }
}
