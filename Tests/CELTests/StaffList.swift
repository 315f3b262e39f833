
@testable import CEL

/// A lazy list that counts how often it is asked for an element.
final class StaffList: ExpressionSequence {
  private let elements: [ExpressionValue]

  init(_ elements: [ExpressionValue]) { self.elements = elements }

  var count: Int { elements.count }

  func element(at index: Int) throws(EvaluationError) -> ExpressionValue { elements[index] }
}
