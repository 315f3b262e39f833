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
