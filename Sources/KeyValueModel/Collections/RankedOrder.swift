/// An order in which a `RankedTree` keeps its elements: by a key of each element, which may be the element itself.
///
/// `precedes` must be a strict total order of the keys: of two keys neither of which precedes the other, the tree holds
/// one at most.
package protocol RankedOrder: Sendable {
  /// What the tree holds.
  associatedtype Element: Sendable
  /// What the elements are ordered by, and found by. Copied often: best when it is small and trivial.
  associatedtype Key: Sendable = Element

  /// The key of an element. Must not change while the element is in a tree.
  static func key(of element: Element) -> Key

  /// Whether `left` comes before `right`.
  static func precedes(_ left: Key, _ right: Key) -> Bool
}

extension RankedOrder where Key == Element {
  /// The element itself.
  package static func key(of element: Element) -> Key { element }
}
