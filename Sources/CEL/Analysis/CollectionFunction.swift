/// A function over the elements of a list that can be kept up to date as elements come, go and change, because each
/// contributes on its own.
///
/// How contributions make the value (evaluation at once gives the same):
/// - `sum`: of numbers, nulls counting as 0, in decimal (`DecimalSum`); `emptyValue` when there is no number. All int:
///   int, an error when out of range; all uint: uint; otherwise double.
/// - `avg`: the exact sum as a double divided by the number of contributions, nulls included; null when there are none.
/// - `min`, `max`: by `ExpressionValue.aggregateOrder`, nulls left out; null when there are none.
/// - `size`: the number of contributions.
/// - For those, an error in any element is the error of the function.
/// - `all`: false when any is false, else an error when any element has one, else true.
/// - `exists`: true when any is true, else an error when any has one, else false.
/// - `existsOne`: an error when any has one, else whether exactly one is true.
package struct CollectionFunction: Sendable {
  /// Which function it is.
  package enum Function: String, Sendable, CaseIterable {
    case sum, avg, min, max, size, all, exists
    case existsOne = "exists_one"
  }

  /// The function.
  package let function: Function
  /// The key path of the list from the root object.
  package let path: [String]
  /// The conditions that an element must meet, in order.
  package let filters: [ElementExpression]
  /// What an element contributes: its transform, or the predicate of `all`, `exists` and `existsOne`. Nil: itself.
  package let transform: ElementExpression?
  /// The type of the function's value.
  package let resultType: ExpressionType
  /// What `sum` is when there is no number: 0 of the type that is known.
  package let emptyValue: ExpressionValue
  /// What is read of each element.
  package let elementReads: KeyReads
  /// The part of the expression's text where the function begins, in Unicode scalars.
  package let offset: Int

  /// What `element` contributes, nil when a condition leaves it out. Fails when a condition or the transform fails,
  /// when a condition is not a bool, or when the predicate of `all`, `exists` and `existsOne` is not one.
  package func contribution(
    of element: ExpressionValue, budget: inout EvaluationBudget
  ) -> Result<ExpressionValue?, EvaluationError> {
    for filter in filters {
      switch filter.evaluate(element, budget: &budget) {
      case .success(.bool(true)): continue
      case .success(.bool(false)): return .success(nil)
      case .success(let other): return .failure(.notBool(other))
      case .failure(let error): return .failure(error)
      }
    }
    guard let transform else { return .success(element) }
    let value = transform.evaluate(element, budget: &budget)
    switch function {
    case .sum, .avg, .min, .max, .size: return value.map { $0 }
    case .all, .exists, .existsOne:
      guard case .success(let value) = value else { return value.map { $0 } }
      guard case .bool = value else { return .failure(.notBool(value)) }
      return .success(value)
    }
  }
}

extension EvaluationError {
  static func notBool(_ value: ExpressionValue) -> EvaluationError {
    EvaluationError(.noSuchOverload, "a condition must be a bool, not \(value.typeName)")
  }
}
