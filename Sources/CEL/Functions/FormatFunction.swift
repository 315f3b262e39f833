/// `text.format(list)`: the clauses of the text, such as `%s`, are replaced by the elements of the list.
enum FormatFunction {
  static let format = FunctionDefinition(
    "format", [([.string, .list(.dyn)], .string)]
  ) { (arguments, budget) throws(EvaluationError) in
    var writer = FormatWriter(try arguments.list(1))
    try writer.write(arguments.string(0), &budget)
    return .string(writer.result)
  }
}
