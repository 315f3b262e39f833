extension Checker {
  /// A function with its arguments.
  mutating func call(
    _ node: ExpressionNode, _ name: String, _ target: ExpressionNode?, _ arguments: [ExpressionNode]
  ) -> ExpressionType {
    if let target, let function = qualified(name, target) {
      return applied(node, function, arguments.map { type(of: $0) }, isMember: false)
    }
    let types = ((target.map { [$0] } ?? []) + arguments).map { type(of: $0) }
    guard let function = FunctionLibrary.function(name, isMember: target != nil) else {
      return unknown(node, name, isMember: target != nil)
    }
    if function.name == "timestamp" { checkTimestamp(arguments) }
    return applied(node, function, types, isMember: target != nil)
  }

  /// The function whose name holds a dot, such as `strings.quote`, unless the name before the dot is a variable.
  private func qualified(_ name: String, _ target: ExpressionNode) -> FunctionDefinition? {
    guard case .identifier(let space, _) = target.kind else { return nil }
    guard local(space) == nil, environment.type(ofVariable: space) == nil else { return nil }
    return FunctionLibrary.function("\(space).\(name)", isMember: false)
  }

  private mutating func unknown(_ node: ExpressionNode, _ name: String, isMember: Bool) -> ExpressionType {
    let isOther = FunctionLibrary.function(name, isMember: !isMember) != nil
    let hint = !isOther ? "" : isMember ? "; it is called as \(name)(value)" : "; it is called as value.\(name)()"
    let message = "undeclared function '\(name)'\(hint)"
    names.meanings[node.id] = .nothing(message)
    return fault(message, node)
  }

  private mutating func applied(
    _ node: ExpressionNode, _ function: FunctionDefinition, _ types: [ExpressionType], isMember: Bool
  ) -> ExpressionType {
    let shown =
      isMember
      ? "\(types[0]).\(function.name)(\(types.dropFirst().map(\.description).joined(separator: ", ")))"
      : "\(function.name)(\(types.map(\.description).joined(separator: ", ")))"
    let message = "no such overload: \(shown)"
    guard function.overloads.contains(where: { $0.arguments.count == types.count }) else {
      names.meanings[node.id] = .nothing(message)
      return fault(message, node)
    }
    names.meanings[node.id] = .function(function)
    if function.name == "dyn" { return .dyn }
    return Checker.result(function.overloads, types) ?? fault(message, node)
  }
}
