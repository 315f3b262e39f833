/// A node of a `RankedTree`: elements in order, or the nodes below.
///
/// Nodes are arrays, so that a node that a copy of the tree shares is copied when it is changed, and one that no copy
/// shares is changed in place. All leaves have the same depth. A node that is not the root has at least `minimum` and
/// at most `maximum` entries; a root that is not a leaf has at least two.
enum RankedNode<Order: RankedOrder>: Sendable {
  /// The elements themselves.
  case leaf([Order.Element])
  /// What is below, in order.
  case inner([RankedBranch<Order>])

  /// The most entries in a node, measured: see `RankedTree`.
  static var maximum: Int { 24 }
  /// The fewest entries in a node below the root. Less than half, so that a node that was just split does not merge
  /// again at the next removal.
  static var minimum: Int { 8 }

  /// Gives the node and leaves an empty leaf, so that its array has one owner less and may be changed in place.
  mutating func take() -> RankedNode {
    var node = RankedNode.leaf([])
    swap(&node, &self)
    return node
  }

  /// How many entries the node itself has.
  var width: Int {
    switch self {
    case .leaf(let elements): elements.count
    case .inner(let branches): branches.count
    }
  }

  /// How many elements are in and below the node. Costs a look at each of its entries.
  var count: Int {
    switch self {
    case .leaf(let elements): elements.count
    case .inner(let branches): branches.reduce(0) { $0 + $1.count }
    }
  }

  /// The branch through which a node above reaches this one, which must not be empty.
  var branch: RankedBranch<Order> {
    switch self {
    case .leaf(let elements): RankedBranch(first: Order.key(of: elements[0]), count: elements.count, node: self)
    case .inner(let branches): RankedBranch(first: branches[0].first, count: count, node: self)
    }
  }
}

/// A node below another one, with what the upper one must know about it.
struct RankedBranch<Order: RankedOrder>: Sendable {
  /// The key of the first element below.
  var first: Order.Key
  /// How many elements are below.
  var count: Int
  /// The node below.
  var node: RankedNode<Order>
}

// MARK: - Looking

extension RankedNode {
  /// The element at `offset`, which must exist.
  func element(at offset: Int) -> Order.Element {
    switch self {
    case .leaf(let elements): return elements[offset]
    case .inner(let branches):
      let (index, rest) = Self.place(of: offset, in: branches)
      return branches[index].node.element(at: rest)
    }
  }

  /// How many elements precede `key`, and whether the next one is equal to it.
  func search(_ key: Order.Key) -> (rank: Int, isFound: Bool) {
    switch self {
    case .leaf(let elements):
      let rank = Self.lowerBound(elements.count) { Order.precedes(Order.key(of: elements[$0]), key) }
      return (rank, rank < elements.count && !Order.precedes(key, Order.key(of: elements[rank])))
    case .inner(let branches):
      // The last branch that does not begin behind the key; the first where all do.
      let index = Self.lowerBound(branches.count - 1) { !Order.precedes(key, branches[$0 + 1].first) }
      var before = 0
      for branch in branches[..<index] { before += branch.count }
      let (rank, isFound) = branches[index].node.search(key)
      return (before + rank, isFound)
    }
  }

  /// The branch that holds the element at `offset`, and the element's offset in it.
  static func place(of offset: Int, in branches: [RankedBranch<Order>]) -> (index: Int, rest: Int) {
    var index = 0
    var rest = offset
    while rest >= branches[index].count {
      rest -= branches[index].count
      index += 1
    }
    return (index, rest)
  }

  /// The first of `count` indices for which `isBefore` is false, which it stays for all that follow.
  private static func lowerBound(_ count: Int, _ isBefore: (Int) -> Bool) -> Int {
    var low = 0
    var high = count
    while low < high {
      let middle = (low + high) / 2
      if isBefore(middle) { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
