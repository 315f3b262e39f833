/// `matches(text, pattern)` and `text.matches(pattern)`, with the syntax of RE2.
enum MatchFunction {
  static let matches = FunctionDefinition(
    "matches", [([.string, .string], .bool)]
  ) { (arguments, budget) throws(EvaluationError) in
    let (text, pattern) = (try arguments.string(0), try arguments.string(1))
    try budget.spend(pattern.utf8.count)
    let program: RegexProgram
    do throws(RegexError) { program = try RegexProgram(pattern) } catch { throw .invalid(error.message) }
    try budget.spend(program.instructions.count + program.foldedCount)
    return .bool(try RegexMachine.matches(program, text, &budget))
  }
}
