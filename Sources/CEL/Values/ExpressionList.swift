/// A list of either kind, to be visited.
package enum ExpressionList: Sendable {
  /// One whose elements are at hand.
  case elements([ExpressionValue])
  /// One that gives its elements when asked.
  case sequence(any ExpressionSequence)

  /// How many elements it has.
  package var count: Int {
    switch self {
    case .elements(let elements): elements.count
    case .sequence(let sequence): sequence.count
    }
  }

  /// The element at `index`, which must be in `0..<count`. Throws what the sequence throws.
  package func element(at index: Int) throws(EvaluationError) -> ExpressionValue {
    switch self {
    case .elements(let elements): elements[index]
    case .sequence(let sequence): try sequence.element(at: index)
    }
  }

  /// All elements, each of which costs one.
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

/// A list that gives its elements when asked: a relation with 100,000 members is not materialised to be counted.
package protocol ExpressionSequence: AnyObject, Sendable {
  /// How many elements it has; the same at every call.
  var count: Int { get }
  /// The element at `index`, which is in `0..<count`; the same at every call.
  func element(at index: Int) throws(EvaluationError) -> ExpressionValue
  /// Whether an object with this identity is an element, when that is known without visiting them, else nil.
  func contains(identity: String) -> Bool?
}

extension ExpressionSequence {
  /// Not known.
  package func contains(identity: String) -> Bool? { nil }
}
