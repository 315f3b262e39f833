/// How the first of two things stands to the second in some order.
package enum Ordering: Sendable {
  /// The first comes first.
  case ascending
  /// Neither comes before the other.
  case same
  /// The second comes first.
  case descending

  /// The ordering of two comparable things.
  @inline(__always)
  init<Item: Comparable>(_ left: Item, _ right: Item) {
    self = left < right ? .ascending : right < left ? .descending : .same
  }
}
