extension RankedNode {
  /// Inserts `element`, which belongs at `offset`. Gives the node that now follows this one, where it had to be split.
  mutating func insert(_ element: Order.Element, at offset: Int) -> RankedNode? {
    switch take() {
    case .leaf(var elements):
      elements.insert(element, at: offset)
      let sibling = Self.split(&elements)
      self = .leaf(elements)
      return sibling.map { .leaf($0) }
    case .inner(var branches):
      Self.insert(element, at: offset, into: &branches)
      let sibling = Self.split(&branches)
      self = .inner(branches)
      return sibling.map { .inner($0) }
    }
  }

  private static func insert(_ element: Order.Element, at offset: Int, into branches: inout [RankedBranch<Order>]) {
    // An element between two branches goes to the end of the left one: so it becomes the first of none but the first.
    var index = 0
    var rest = offset
    while rest > branches[index].count {
      rest -= branches[index].count
      index += 1
    }
    if rest == 0 { branches[index].first = Order.key(of: element) }
    branches[index].count += 1
    guard let sibling = branches[index].node.insert(element, at: rest) else { return }
    let branch = sibling.branch
    branches[index].count -= branch.count
    branches.insert(branch, at: index + 1)
  }

  /// Takes the second half of the entries away where there are too many.
  static func split<Entry>(_ entries: inout [Entry]) -> [Entry]? {
    guard entries.count > maximum else { return nil }
    let middle = entries.count / 2
    let second = Array(entries[middle...])
    entries.removeSubrange(middle...)
    return second
  }
}
