extension Parser {
  /// `has(a.b)`.
  mutating func has(_ arguments: [ExpressionNode], _ offset: Int) throws(ExpressionError) -> ExpressionNode {
    guard arguments.count == 1, case .select(let operand, let field) = arguments[0].kind else {
      throw fault("has() takes one selection, such as has(a.b)", arguments.first?.offset ?? offset)
    }
    return try make(.has(operand, field: field), offset)
  }

  /// The macro that a call with a receiver is, or nil when it is an ordinary call. Throws when the variable of a macro
  /// is not a name.
  mutating func macro(
    _ name: String, _ range: ExpressionNode, _ arguments: [ExpressionNode], _ offset: Int
  ) throws(ExpressionError) -> ExpressionNode? {
    let function = name == "existsOne" ? .existsOne : Comprehension.Function(rawValue: name)
    guard let function, arguments.count == 2 || (arguments.count == 3 && function == .map) else { return nil }
    guard case .identifier(let variable, isAbsolute: false) = arguments[0].kind else {
      throw fault("\(name)() takes the name of a variable first", arguments[0].offset)
    }
    let isMap = function == .map
    let comprehension = Comprehension(
      function: function, range: range, variable: variable,
      predicate: isMap && arguments.count == 2 ? nil : arguments[1],
      transform: isMap ? arguments[arguments.count - 1] : nil)
    return try make(.comprehension(comprehension), offset)
  }
}
