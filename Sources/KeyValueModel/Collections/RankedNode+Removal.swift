extension RankedNode {
  /// Takes the element at `offset` away. The node may be left with too few entries, or none; the caller mends that.
  mutating func remove(at offset: Int) -> Order.Element {
    switch take() {
    case .leaf(var elements):
      let element = elements.remove(at: offset)
      self = .leaf(elements)
      return element
    case .inner(var branches):
      let element = Self.remove(at: offset, from: &branches)
      self = .inner(branches)
      return element
    }
  }

  private static func remove(at offset: Int, from branches: inout [RankedBranch<Order>]) -> Order.Element {
    let (index, rest) = place(of: offset, in: branches)
    branches[index].count -= 1
    let element = branches[index].node.remove(at: rest)
    if branches[index].node.width < minimum {
      mend(index, in: &branches)
    } else if rest == 0 {
      branches[index].first = branches[index].node.firstKey
    }
    return element
  }

  /// The key of the first element; the node must not be empty.
  var firstKey: Order.Key {
    switch self {
    case .leaf(let elements): Order.key(of: elements[0])
    case .inner(let branches): branches[0].first
    }
  }

  /// Merges the branch at `index`, which has too few entries, with a neighbour, or shares the neighbour's entries.
  private static func mend(_ index: Int, in branches: inout [RankedBranch<Order>]) {
    let left = index > 0 ? index - 1 : index
    let right = branches.remove(at: left + 1)
    let sibling = branches[left].node.absorb(right.node)
    branches[left].count += right.count
    // The left one may be the one with too few, and have lost its first element.
    branches[left].first = branches[left].node.firstKey
    guard let sibling else { return }
    let branch = sibling.branch
    branches[left].count -= branch.count
    branches.insert(branch, at: left + 1)
  }

  /// Takes the entries of the node that follows, of the same depth. Gives the second half back where they are too many.
  mutating func absorb(_ next: RankedNode) -> RankedNode? {
    switch (take(), next) {
    case (.leaf(var elements), .leaf(let others)):
      elements += others
      let sibling = Self.split(&elements)
      self = .leaf(elements)
      return sibling.map { .leaf($0) }
    case (.inner(var branches), .inner(let others)):
      branches += others
      let sibling = Self.split(&branches)
      self = .inner(branches)
      return sibling.map { .inner($0) }
    default: preconditionFailure("neighbours of different depth")
    }
  }
}
