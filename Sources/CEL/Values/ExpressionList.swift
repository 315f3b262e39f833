/// A list of either kind, for iteration.
package enum ExpressionList: Sendable {
  /// A list whose elements are in memory.
  case elements([ExpressionValue])
  /// A list that provides its elements on demand.
  case sequence(any ExpressionSequence)

  /// The number of elements.
  package var count: Int {
    switch self {
    case .elements(let elements): elements.count
    case .sequence(let sequence): sequence.count
    }
  }

  /// Returns the element at `index`, which must be in `0..<count`. Throws what the sequence throws.
  package func element(at index: Int) throws(EvaluationError) -> ExpressionValue {
    switch self {
    case .elements(let elements): elements[index]
    case .sequence(let sequence): try sequence.element(at: index)
    }
  }

  /// Returns all elements, each of which costs one.
  func materialised(_ budget: inout EvaluationBudget) throws(EvaluationError) -> [ExpressionValue] {
    try budget.spend(count)
    switch self {
    case .elements(let elements): return elements
    case .sequence(let sequence):
      var elements: [ExpressionValue] = []
      elements.reserveCapacity(sequence.count)
      for index in 0..<sequence.count { elements.append(try sequence.element(at: index)) }
      return elements
    }
  }
}

/// A list that provides its elements on demand: a relation with 100,000 members is not materialised to be counted.
package protocol ExpressionSequence: AnyObject, Sendable {
  /// The number of elements; the same at every call.
  var count: Int { get }
  /// Returns the element at `index`, which is in `0..<count`; the same at every call.
  func element(at index: Int) throws(EvaluationError) -> ExpressionValue
  /// Returns whether an object with this identity is an element, if that is known without visiting them; otherwise nil.
  func contains(identity: String) -> Bool?
}

extension ExpressionSequence {
  /// Returns nil: it is not known.
  package func contains(identity: String) -> Bool? { nil }
}
