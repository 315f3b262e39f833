/// `exists_one`: an error of any element is its error.
final class UniquenessNode: ProgramNode {
  private let range: ElementRange
  private let predicate: any ProgramNode

  init(_ range: ElementRange, _ predicate: any ProgramNode) { (self.range, self.predicate) = (range, predicate) }

  func evaluate(_ frame: inout EvaluationFrame) throws(EvaluationError) -> ExpressionValue {
    let elements = try range.elements(&frame, "exists_one")
    var count = 0
    for index in 0..<elements.count {
      try range.bind(elements, index, &frame)
      let value = try predicate.evaluate(&frame)
      guard case .bool(let flag) = value else { throw .notBool(value) }
      if flag { count += 1 }
    }
    return .bool(count == 1)
  }
}
