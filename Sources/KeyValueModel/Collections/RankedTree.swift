/// Elements in an order, each with its rank: a counted B+ tree.
///
/// Persistent: a copy costs O(1) and shares everything, and a change of a shared tree copies no more than the nodes on
/// one path. All that looks up or changes one element costs O(log n) comparisons or fewer, and a step of an iteration
/// O(1). Nodes have 8 to 24 entries: of 12, 16, 24, 32 and 48 at the most, 24 and 32 were the quickest where one member
/// of 1,000 or 100,000 is inserted or removed and an older copy is kept, and not slower to search than the others.
package struct RankedTree<Order: RankedOrder>: Sendable {
  /// What the tree holds.
  package typealias Element = Order.Element
  /// What elements are found by.
  package typealias Key = Order.Key

  /// The one stored property: a tree is a single word, so that what holds it stays small.
  var root: RankedNode<Order>

  /// An empty tree, which allocates nothing.
  package init() {
    root = .leaf([])
  }

  /// How many elements there are. O(1), a sum over the entries of the root.
  package var count: Int { root.count }

  /// How many elements precede `key`: the rank of the first that does not, or `count`. O(log n).
  package func lowerBound(of key: Key) -> Int { root.search(key).rank }

  /// How many elements precede `key` or are equal to it. O(log n).
  package func upperBound(of key: Key) -> Int {
    let (rank, isFound) = root.search(key)
    return isFound ? rank + 1 : rank
  }

  /// How many elements precede `key`, and whether the next one is equal to it. O(log n).
  package func place(of key: Key) -> (rank: Int, isFound: Bool) { root.search(key) }

  /// The rank of the element with this key, nil where there is none. O(log n).
  package func rank(of key: Key) -> Int? {
    let (rank, isFound) = root.search(key)
    return isFound ? rank : nil
  }

  /// Whether there is an element with this key. O(log n).
  package func contains(_ key: Key) -> Bool { root.search(key).isFound }

  /// The element with this key, nil where there is none. O(log n).
  package func element(for key: Key) -> Element? { rank(of: key).map(root.element) }

  /// The element at a rank, which must be at least 0 and less than `count`. O(log n), without a comparison.
  package func element(at rank: Int) -> Element {
    precondition(rank >= 0 && rank < count, "no element of this rank")
    return root.element(at: rank)
  }

  /// Whether both are copies of one tree that have not changed since: then they are equal. O(1); false says nothing.
  package func isCopy(of other: RankedTree) -> Bool {
    guard count == other.count else { return false }
    return switch (root, other.root) {
    case (.leaf(let left), .leaf(let right)): Self.isSameStorage(left, right)
    case (.inner(let left), .inner(let right)): Self.isSameStorage(left, right)
    default: false
    }
  }

  private static func isSameStorage<Entry>(_ left: [Entry], _ right: [Entry]) -> Bool {
    left.withUnsafeBufferPointer { left in right.withUnsafeBufferPointer { left.baseAddress == $0.baseAddress } }
  }
}
