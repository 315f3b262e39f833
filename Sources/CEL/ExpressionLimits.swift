/// How large an expression may be and how much its evaluation may cost. Clients send expressions, so that everything
/// has a limit; one that is over a limit is refused or stopped with an error that says so.
package struct ExpressionLimits: Sendable, Equatable {
  /// The most UTF-8 bytes of an expression's text.
  package var textBytes = 16_384
  /// How deep parentheses, brackets, braces, calls and conditionals may be nested in the text.
  package var nestingDepth = 64
  /// The greatest height of the syntax tree: a chain such as `a + b + c` or `a.b.c` is as high as it is long. Operands
  /// of `&&` and of `||` are side by side and count once.
  package var treeHeight = 128
  /// The most nodes of the syntax tree.
  package var nodes = 8_192
  /// The cost that one evaluation may spend: see `EvaluationBudget`.
  package var cost = 1_000_000
  /// How deep evaluation may go in all, expressions that are evaluated for their values within others included.
  package var evaluationDepth = 384

  /// The defaults.
  package init() {}
}
