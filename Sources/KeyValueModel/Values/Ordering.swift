import CEL

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

extension String {
  /// How the bytes of this text's UTF-8 stand to those of the other: not as Swift's own `<`, which takes canonically
  /// equivalent texts for the same. O(n) in the length that both share.
  func byteOrdering(to other: String) -> Ordering { Ordering(compareBytes(other), 0) }
}
