/// An expression that is ready to be evaluated.
package struct CheckedExpression: Sendable {
  /// The type of its values, as far as it is known. A value of any type may be null.
  package let type: ExpressionType
  /// The keys that it may read: those of the root object, and of the objects that they lead to. Reads of extracted
  /// collection functions are not included.
  package let reads: KeyReads
  /// The syntax tree, in which extracted collection functions are references.
  package let root: ExpressionNode
  private let source: Expression
  private let names: NameTable
  private let program: Program
  private let localCount: Int

  /// Checks `expression`; leniently, if faults are left to evaluation.
  init(
    _ expression: Expression, in environment: any ExpressionEnvironment, isLenient: Bool
  ) throws(ExpressionError) {
    var checker = Checker(expression, environment, isLenient: isLenient)
    let names = try checker.check()
    try self.init(expression, root: expression.root, names)
  }

  /// Creates the program for `root`, a tree with the names of `source`. Throws if a pattern is not a regular
  /// expression, and if the tree reads too many key paths.
  init(_ source: Expression, root: ExpressionNode, _ names: NameTable) throws(ExpressionError) {
    self.source = source
    self.root = root
    self.names = names
    type = names.types[root.id]
    guard let reads = ReadsAnalysis.reads(of: root, names) else {
      throw ExpressionError("the expression reads too many key paths", at: root.offset, in: source.text)
    }
    self.reads = reads
    var builder = ProgramBuilder(source, names)
    program = try builder.program(for: root)
    localCount = builder.localCount
  }

  /// Returns a part of the expression by itself; nil if it cannot be one.
  package func part(_ node: ExpressionNode) -> CheckedExpression? {
    try? CheckedExpression(source, root: node, names)
  }

  /// Evaluates the expression. Its variables and collection functions come from `activation`; its cost and theirs are
  /// spent from `budget`. Returns the value, or the reason why there is none.
  package func evaluate(
    _ activation: any ExpressionActivation, budget: inout EvaluationBudget
  ) -> Result<ExpressionValue, EvaluationError> {
    evaluate(activation, local: nil, budget: &budget)
  }

  /// Evaluates with a value for the comprehension variable with a number.
  func evaluate(
    _ activation: any ExpressionActivation, local: (number: Int, value: ExpressionValue)?,
    budget: inout EvaluationBudget
  ) -> Result<ExpressionValue, EvaluationError> {
    // The caller's stack frames between an expression and one that is evaluated for it count like a few levels.
    let levels = root.height + CheckedExpression.entryLevels
    let count = max(localCount, local.map { $0.number + 1 } ?? 0)
    var frame = EvaluationFrame(activation, budget, localCount: count)
    if let local { frame.locals[local.number] = local.value }
    let result: Result<ExpressionValue, EvaluationError>
    do throws(EvaluationError) {
      try frame.budget.enter(levels: levels)
      defer { frame.budget.leave(levels: levels) }
      let value = try program(&frame)
      // New lists may share their elements, and be larger than the number of steps that made them.
      try value.spendSize(&frame.budget)
      result = .success(value)
    } catch {
      result = .failure(error)
    }
    budget = frame.budget
    return result
  }

  private static let entryLevels = 4

  // MARK: Collection functions

  /// Finds the outermost parts that are a collection function over a key path that ends in a list: `sum`, `avg`, `min`,
  /// `max` and `size` of the path, perhaps with `.filter`s after it and one `.map` after those; and `all`, `exists` and
  /// `exists_one` of the path itself. The conditions and transforms must read nothing but the element.
  ///
  /// Returns the expression with each of them replaced by a reference to its index in the array. Evaluation asks the
  /// activation for their values.
  package func extractingCollectionFunctions() -> (expression: CheckedExpression, functions: [CollectionFunction]) {
    var extraction = CollectionFunctionExtraction(source, names)
    let root = extraction.rewritten(self.root)
    // The parts of a valid expression are valid themselves.
    guard !extraction.functions.isEmpty, let rest = try? CheckedExpression(source, root: root, names) else {
      return (self, [])
    }
    return (rest, extraction.functions)
  }
}
