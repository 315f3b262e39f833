extension Programs {
  /// What a macro visits, and where its variable is kept.
  struct Range: Sendable {
    let macro: Comprehension.Function
    let operand: Program
    let variable: Int

    /// The elements: those of a list, or the keys of a map. Throws when the range is neither.
    func elements(_ frame: inout EvaluationFrame) throws(EvaluationError) -> ExpressionList {
      try frame.budget.spend()
      let range = try operand(&frame)
      if case .map(let map) = range { return .elements(map.keys) }
      guard let list = range.asList else { throw .noOverload(function: macro.rawValue, [range]) }
      return list
    }

    /// Binds the variable to the element at `index`.
    @inline(__always)
    func bind(
      _ elements: ExpressionList, _ index: Int, _ frame: inout EvaluationFrame
    ) throws(EvaluationError) {
      try frame.budget.spend()
      frame.locals[variable] = try elements.element(at: index)
    }
  }

  /// `all`, of which false is decisive, or `exists`, of which true is: an element that decides makes errors of the
  /// others disappear (CEL language definition, Macros).
  static func quantifier(_ range: Range, _ predicate: @escaping Program, decisive: Bool) -> Program {
    { (frame) throws(EvaluationError) in
      let elements = try range.elements(&frame)
      var absorbed = AbsorbedError()
      for index in 0..<elements.count {
        try range.bind(elements, index, &frame)
        if try absorbed.decides(predicate, decisive, &frame) { return .bool(decisive) }
      }
      try absorbed.rethrow()
      return .bool(!decisive)
    }
  }

  /// `exists_one`: an error of any element is its error.
  static func uniqueness(_ range: Range, _ predicate: @escaping Program) -> Program {
    { (frame) throws(EvaluationError) in
      let elements = try range.elements(&frame)
      var count = 0
      for index in 0..<elements.count {
        try range.bind(elements, index, &frame)
        if try predicate(&frame).flag() { count += 1 }
      }
      return .bool(count == 1)
    }
  }

  /// `map` or `filter`: what `transform` makes, or themselves, of the elements that meet `predicate`, or all.
  static func transform(_ range: Range, where predicate: Program?, _ transform: Program?) -> Program {
    { (frame) throws(EvaluationError) in
      let elements = try range.elements(&frame)
      var results: [ExpressionValue] = []
      for index in 0..<elements.count {
        try range.bind(elements, index, &frame)
        if let predicate, try !predicate(&frame).flag() { continue }
        results.append(try transform?(&frame) ?? frame.locals[range.variable])
      }
      return .list(results)
    }
  }
}
