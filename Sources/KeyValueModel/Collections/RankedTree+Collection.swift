extension RankedTree: RandomAccessCollection {
  /// The rank of the first element.
  package var startIndex: Int { 0 }
  /// The rank behind the last element.
  package var endIndex: Int { count }

  /// The element at a rank. O(log n); an iteration is quicker than a subscript for each rank.
  package subscript(rank: Int) -> Element { element(at: rank) }

  /// The element that no other precedes, nil where there is none. O(log n), without a comparison.
  package var first: Element? { count == 0 ? nil : root.element(at: 0) }

  /// The element that precedes no other, nil where there is none. O(log n), without a comparison.
  package var last: Element? { count == 0 ? nil : root.element(at: count - 1) }

  /// The elements in order.
  package func makeIterator() -> Iterator { Iterator(root, from: 0) }

  /// The elements in order from the one at `rank`, which must be at least 0; none where it is not less than `count`.
  /// O(log n), and then O(1) a step.
  package func makeIterator(from rank: Int) -> Iterator { Iterator(root, from: rank) }

  /// Walks over the leaves; a step costs O(1) on the average.
  package struct Iterator: IteratorProtocol, Sendable {
    private var elements: [Element] = []
    private var index = 0
    /// From the root down: the nodes above the leaf, each with the index of the branch that comes after this leaf.
    private var path: [(branches: [RankedBranch<Order>], next: Int)] = []

    init(_ root: RankedNode<Order>, from rank: Int) {
      precondition(rank >= 0, "no such rank")
      var node = root
      var rest = rank
      while case .inner(let branches) = node {
        var index = 0
        while index < branches.count - 1, rest >= branches[index].count {
          rest -= branches[index].count
          index += 1
        }
        path.append((branches, index + 1))
        node = branches[index].node
      }
      guard case .leaf(let elements) = node else { return }
      self.elements = elements
      index = Swift.min(rest, elements.count)
    }

    /// The next element, nil behind the last one.
    package mutating func next() -> Element? {
      if index == elements.count {
        guard advanceToNextLeaf() else { return nil }
      }
      defer { index += 1 }
      return elements[index]
    }

    private mutating func advanceToNextLeaf() -> Bool {
      while let (branches, next) = path.last, next == branches.count { path.removeLast() }
      guard let (branches, next) = path.last else { return false }
      path[path.count - 1].next += 1
      var node = branches[next].node
      while case .inner(let below) = node {
        path.append((below, 1))
        node = below[0].node
      }
      guard case .leaf(let elements) = node else { return false }
      self.elements = elements
      index = 0
      return true
    }
  }
}
