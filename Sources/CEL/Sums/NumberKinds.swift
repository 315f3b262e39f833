/// How many numbers of each type have been added to a sum: they decide the type of the sum.
package struct NumberKinds: Sendable, Equatable {
  /// How many of type int.
  package var ints = 0
  /// How many of type uint.
  package var uints = 0
  /// How many of type double.
  package var doubles = 0

  /// None.
  package init() {}
}

extension DecimalSum {
  /// The value of `sum` over numbers of these kinds: `emptyValue` when there are none, an int or a uint when all are,
  /// else a double. Throws `outOfRange` when a sum of integers is out of range.
  package func value(
    _ kinds: NumberKinds, emptyValue: ExpressionValue
  ) throws(EvaluationError) -> ExpressionValue {
    switch (kinds.ints > 0, kinds.uints > 0, kinds.doubles > 0) {
    case (false, false, false): return emptyValue
    case (true, false, false):
      guard let sum = integerSum else { throw .overflow("int") }
      return .int(sum)
    case (false, true, false):
      guard let sum = unsignedSum else { throw .overflow("uint") }
      return .uint(sum)
    default: return .double(sum)
    }
  }
}
