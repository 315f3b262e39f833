extension CheckedExpression {
  /// Finds the outermost parts that are a collection function over a key path that ends in a list: `sum`, `avg`, `min`,
  /// `max` and `size` of the path, perhaps with `.filter`s after it and one `.map` after those; and `all`, `exists` and
  /// `exists_one` of the path itself. What is said of an element must read nothing but the element.
  ///
  /// Gives the expression with each of them replaced by a reference to its place in the array, whose value evaluation
  /// asks the activation for.
  package func extractingCollectionFunctions() -> (expression: CheckedExpression, functions: [CollectionFunction]) {
    var extraction = CollectionFunctionExtraction(source, names)
    let root = extraction.rewritten(self.root)
    // The parts of an expression that has been made can be made.
    guard !extraction.functions.isEmpty, let rest = try? CheckedExpression(source, root: root, names) else {
      return (self, [])
    }
    return (rest, extraction.functions)
  }
}
