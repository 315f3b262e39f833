/// `text.format(list)`: the clauses of the text, such as `%s`, are replaced by the elements of the list.
enum FormatFunction {
  static let format = FunctionDefinition(
    "format", [([.string, .list(.dyn)], .string)]
  ) { (arguments, budget) throws(EvaluationError) in
    guard case .string(let text) = arguments[0], let list = arguments[1].asList else {
      throw .noOverload(function: "format", arguments)
    }
    var writer = FormatWriter(list)
    try writer.write(text, &budget)
    return .string(writer.result)
  }
}
