/// A stored key of an object, and a value that it must not be under, or not over, for a condition to hold: `salary >
/// 1000` demands that the salary is not under 1000. What it allows need not meet the condition: null does not, which
/// has no order, so that the condition fails.
package struct KeyBound: Hashable, Sendable {
  /// Which side of the value is out of the question.
  package enum Side: Hashable, Sendable {
    /// The key must be the value or more.
    case least
    /// The key must be the value or less.
    case greatest
  }

  /// The index of the key in its entity.
  package let key: Int
  /// Which side is meant.
  package let side: Side
  /// The value, in the order of `ValueOrder.plain`.
  package let value: Value

  /// Whether a value of the key leaves open that the condition holds, or that it fails.
  package func allows(_ other: Value) -> Bool {
    guard !other.isNull else { return true }
    return switch side {
    case .least: !ValueOrder.plain.precedes(other, value)
    case .greatest: !ValueOrder.plain.precedes(value, other)
    }
  }
}
