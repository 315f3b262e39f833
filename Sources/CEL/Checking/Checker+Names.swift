import Support

extension Checker {
  /// What the identifiers of a chain of selections are, from the left; nil when the node is no such chain.
  private func chain(_ node: ExpressionNode) -> (names: [String], isAbsolute: Bool)? {
    var names: [String] = []
    var node = node
    while true {
      switch node.kind {
      case .identifier(let name, let isAbsolute): return (([name] + names.reversed()), isAbsolute)
      case .select(let operand, let field):
        names.append(field)
        node = operand
      default: return nil
      }
    }
  }

  /// What a name with or without dots stands for. The longest name that is declared wins (CEL language definition, Name
  /// Resolution), but a comprehension's variable hides all that begin with its name.
  mutating func reference(_ node: ExpressionNode) -> ExpressionType {
    if let (parts, isAbsolute) = chain(node) {
      if !isAbsolute, let local = local(parts[0]) {
        if parts.count == 1 {
          names.meanings[node.id] = .local(local.number)
          return local.type
        }
      } else if let type = declared(parts.joined(separator: "."), node) {
        return type
      } else if parts.count == 1 {
        return undeclared(parts[0], node)
      }
    }
    guard case .select(let operand, let field) = node.kind else { return .dyn }
    return selection(node, operand, field)
  }

  /// The type of a variable, or of a type's name; nil when it is neither.
  private mutating func declared(_ name: String, _ node: ExpressionNode) -> ExpressionType? {
    if let type = environment.type(ofVariable: name) {
      names.meanings[node.id] = .variable(name, index: environment.index(ofVariable: name) ?? -1)
      return type
    }
    guard TypeNames.denotations.contains(name) else { return nil }
    names.meanings[node.id] = .type(name)
    return .type
  }

  private mutating func undeclared(_ name: String, _ node: ExpressionNode) -> ExpressionType {
    let message = "undeclared reference to '\(name)'\(NearestName.hint(for: name, among: environment.variableNames))"
    names.meanings[node.id] = .nothing(message)
    return fault(message, node)
  }

  private mutating func selection(
    _ node: ExpressionNode, _ operand: ExpressionNode, _ field: String
  ) -> ExpressionType {
    switch type(of: operand) {
    case .object(let entity):
      guard let type = environment.type(ofField: field, inObject: entity) else {
        let hint = NearestName.hint(for: field, among: environment.fieldNames(inObject: entity))
        return fault("\(entity) has no key '\(field)'\(hint)", node)
      }
      names.meanings[node.id] = .field(index: environment.index(ofField: field, inObject: entity) ?? -1)
      return type
    case .map(let key, let value):
      return key.isAssignable(to: .string) ? value : fault("\(ExpressionType.map(key, value)) has no text keys", node)
    case .dyn: return .dyn
    case let type: return fault("\(type) has no key '\(field)'", node)
    }
  }

  /// `has(operand.field)`.
  mutating func presence(_ node: ExpressionNode, _ operand: ExpressionNode, _ field: String) -> ExpressionType {
    _ = selection(node, operand, field)
    return .bool
  }

  /// `operand[index]`.
  mutating func element(
    _ node: ExpressionNode, _ operand: ExpressionNode, _ index: ExpressionNode
  ) -> ExpressionType {
    let (container, key) = (type(of: operand), type(of: index))
    switch container {
    case .list(let element) where key == .int || key == .uint || key == .dyn: return element
    case .map(let expected, let value) where key != .null && key.isComparable(with: expected): return value
    case .dyn: return .dyn
    default: return fault("no such overload: \(container)[\(key)]", node)
    }
  }
}
