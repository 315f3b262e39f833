/// A function over the elements of a list that can be kept up to date as elements are added, removed and changed,
/// because each contributes on its own.
///
/// The value results from the contributions as follows (direct evaluation gives the same):
/// - `sum`: of numbers, nulls counting as 0, in decimal (`DecimalSum`); 0 of the function's type if there is no number.
///   All int: int, an error if out of range; all uint: uint; otherwise double.
/// - `avg`: the exact sum as a double divided by the number of contributions, nulls included; null if there are none.
/// - `min`, `max`: by `ExpressionValue.aggregateOrder`, nulls left out; null if there are none.
/// - `size`: the number of contributions.
/// - For all of these, an error in any element is the error of the function.
/// - `all`: false if any is false, else an error if any element has one, else true.
/// - `exists`: true if any is true, else an error if any element has one, else false.
/// - `existsOne`: an error if any element has one, else true if exactly one is true, else false.
package struct CollectionFunction: Sendable {
  /// The kind of a collection function.
  package enum Function: String, Sendable, CaseIterable {
    case sum, avg, min, max, size, all, exists
    case existsOne = "exists_one"
  }

  /// The function.
  package let function: Function
  /// The key path of the list from the root object.
  package let path: [String]
  /// The conditions that an element must meet, in order.
  package let filters: [ElementExpression]
  /// The expression for the contribution of an element: its transform, or the predicate of `all`, `exists` and
  /// `existsOne`. Nil if an element contributes itself.
  package let transform: ElementExpression?
  /// The type of the function's value.
  package let resultType: ExpressionType
  /// The keys that are read of each element.
  package let elementReads: KeyReads

  /// Returns the contribution of `element`; nil if a condition excludes it. Fails if a condition or the transform
  /// fails, if a condition is not a bool, or if the predicate of `all`, `exists` and `existsOne` is not one.
  package func contribution(
    of element: ExpressionValue, budget: inout EvaluationBudget
  ) -> Result<ExpressionValue?, EvaluationError> {
    for filter in filters {
      switch filter.evaluate(element, budget: &budget) {
      case .success(.bool(true)): continue
      case .success(.bool(false)): return .success(nil)
      case .success(let other): return .failure(.notBool(other))
      case .failure(let error): return .failure(error)
      }
    }
    guard let transform else { return .success(element) }
    let value = transform.evaluate(element, budget: &budget)
    switch function {
    case .sum, .avg, .min, .max, .size: return value.map { $0 }
    case .all, .exists, .existsOne:
      guard case .success(let value) = value else { return value.map { $0 } }
      guard case .bool = value else { return .failure(.notBool(value)) }
      return .success(value)
    }
  }
}

/// An expression of a single variable, which is the element of a list.
package struct ElementExpression: Sendable {
  /// The type of the expression's values.
  package var type: ExpressionType { expression.type }
  fileprivate let expression: CheckedExpression
  /// The number of the variable.
  fileprivate let number: Int

  /// Returns the value for `element`, or the reason why there is none.
  package func evaluate(
    _ element: ExpressionValue, budget: inout EvaluationBudget
  ) -> Result<ExpressionValue, EvaluationError> {
    expression.evaluate(NoVariables.only, local: (number, element), budget: &budget)
  }
}

/// An activation for expressions without variables, such as those of one element alone.
private final class NoVariables: ExpressionActivation {
  static let only = NoVariables()

  func value(
    ofVariable name: String, index: Int, budget: inout EvaluationBudget
  ) throws(EvaluationError) -> ExpressionValue {
    throw EvaluationError(.undeclaredReference, "undeclared reference to '\(name)'")
  }
}

/// Replaces collection functions in a tree.
struct CollectionFunctionExtraction {
  /// A list that is a key path, with the operations on its elements.
  private struct Source {
    let path: [String]
    var filters: [ElementExpression] = []
    var transform: ElementExpression?
  }

  private let source: Expression
  private let names: NameTable
  private(set) var functions: [CollectionFunction] = []

  init(_ source: Expression, _ names: NameTable) { (self.source, self.names) = (source, names) }

  /// Returns the tree with references to functions, which are added to `functions`.
  mutating func rewritten(_ node: ExpressionNode) -> ExpressionNode {
    if let function = function(node) {
      functions.append(function)
      return ExpressionNode(id: node.id, offset: node.offset, kind: .collectionFunction(functions.count - 1))
    }
    if case .has = node.kind { return node }
    return node.replacingChildren { rewritten($0) }
  }

  /// Returns the collection function that a node is; nil if it is none.
  private func function(_ node: ExpressionNode) -> CollectionFunction? {
    switch node.kind {
    case .call(let name, let target, let arguments):
      guard case .function(let meaning)? = names.meanings[node.id], meaning.name == name else { return nil }
      guard let function = CollectionFunction.Function(rawValue: name) else { return nil }
      let operands = (target.map { [$0] } ?? []) + arguments
      guard operands.count == 1, let source = transformed(operands[0]) else { return nil }
      return made(function, node, source)
    case .comprehension(let macro):
      guard let function = CollectionFunction.Function(rawValue: macro.function.rawValue) else { return nil }
      guard let path = path(macro.range), let predicate = element(node, macro.predicate) else { return nil }
      return made(function, node, Source(path: path, transform: predicate))
    default: return nil
    }
  }

  private func made(
    _ function: CollectionFunction.Function, _ node: ExpressionNode, _ source: Source
  ) -> CollectionFunction {
    var reads = KeyReads()
    for piece in source.filters + [source.transform].compactMap({ $0 }) {
      guard let part = ReadsAnalysis.reads(of: piece.expression.root, names, element: piece.number) else { continue }
      reads.merge(part)
    }
    return CollectionFunction(
      function: function, path: source.path, filters: source.filters, transform: source.transform,
      resultType: names.types[node.id], elementReads: reads)
  }

  /// Returns a path, its filters and its transform, if there is one; nil if the node is anything else.
  private func transformed(_ node: ExpressionNode) -> Source? {
    guard case .comprehension(let macro) = node.kind, macro.function == .map else { return filtered(node) }
    guard var source = filtered(macro.range), let transform = element(node, macro.transform) else { return nil }
    if macro.predicate != nil {
      guard let filter = element(node, macro.predicate) else { return nil }
      source.filters.append(filter)
    }
    source.transform = transform
    return source
  }

  /// Returns a path and its filters; nil if the node is anything else.
  private func filtered(_ node: ExpressionNode) -> Source? {
    guard case .comprehension(let macro) = node.kind else { return path(node).map { Source(path: $0) } }
    guard macro.function == .filter, var source = filtered(macro.range) else { return nil }
    guard let filter = element(node, macro.predicate) else { return nil }
    source.filters.append(filter)
    return source
  }

  /// Returns the keys of a path from the root object that ends in a list; nil if the node is not such a path.
  private func path(_ node: ExpressionNode) -> [String]? {
    guard case .list = names.types[node.id] else { return nil }
    return keys(node)
  }

  private func keys(_ node: ExpressionNode) -> [String]? {
    if case .variable(let name, _)? = names.meanings[node.id] {
      return name == Expression.rootVariable ? [] : name.split(separator: ".").map(String.init)
    }
    guard case .select(let operand, let field) = node.kind, case .object = names.types[operand.id] else { return nil }
    return keys(operand).map { $0 + [field] }
  }

  /// Returns a part of a macro as an expression of the element alone; nil if it reads anything else.
  private func element(_ node: ExpressionNode, _ part: ExpressionNode?) -> ElementExpression? {
    guard let part, case .binds(let number)? = names.meanings[node.id], isClosed(part, number) else { return nil }
    guard let expression = try? CheckedExpression(source, root: part, names) else { return nil }
    return ElementExpression(expression: expression, number: number)
  }

  /// Returns true if a part reads no variable except the one with this number and those that it binds, whose numbers
  /// are higher.
  private func isClosed(_ node: ExpressionNode, _ number: Int) -> Bool {
    switch names.meanings[node.id] {
    case .variable: return false
    case .local(let other): return other >= number
    default: break
    }
    if case .call = node.kind, case .function(let function)? = names.meanings[node.id], function.name.contains(".") {
      // The name in front of `strings.quote` is not a variable.
      return node.kind.children.dropFirst().allSatisfy { isClosed($0, number) }
    }
    return node.kind.children.allSatisfy { isClosed($0, number) }
  }
}
