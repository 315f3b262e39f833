extension RankedTree {
  /// Inserts an element. Gives its rank, or nil where there is one with an equal key, which then stays. O(log n).
  @discardableResult
  package mutating func insert(_ element: Element) -> Int? {
    let (rank, isFound) = root.search(Order.key(of: element))
    guard !isFound else { return nil }
    insert(element, at: rank)
    return rank
  }

  /// Inserts an element whose rank the caller knows: all before `rank` precede it, and it precedes all others.
  /// O(log n), without a comparison; where the rank is wrong, the tree is no longer in order.
  package mutating func insert(_ element: Element, at rank: Int) {
    precondition(rank >= 0 && rank <= count, "no such rank")
    guard let sibling = root.insert(element, at: rank) else { return }
    let first = root.branch
    root = .inner([first, sibling.branch])
  }

  /// Takes the element with this key away. Gives it with its former rank, nil where there is none. O(log n).
  @discardableResult
  package mutating func remove(_ key: Key) -> (rank: Int, element: Element)? {
    guard let rank = rank(of: key) else { return nil }
    return (rank, remove(at: rank))
  }

  /// Takes the element at a rank away, which must be at least 0 and less than `count`. O(log n), without a comparison.
  @discardableResult
  package mutating func remove(at rank: Int) -> Element {
    precondition(rank >= 0 && rank < count, "no element of this rank")
    let element = root.remove(at: rank)
    if case .inner(let branches) = root, branches.count == 1 { root = branches[0].node }
    return element
  }

  /// Takes all elements away. O(1), and what it costs to free nodes that no copy shares.
  package mutating func removeAll() { self = RankedTree() }

  /// Changes the elements at these ranks in place, in order; `change` gets each with its rank. The keys may change, as
  /// long as the order stays. O(k + log n) for k elements.
  package mutating func update(_ ranks: Range<Int>, _ change: (Int, inout Element) -> Void) {
    precondition(ranks.lowerBound >= 0 && ranks.upperBound <= count, "no elements of these ranks")
    root.update(ranks, offsetBy: 0, change)
  }

  /// Changes the element at a rank in place; its key may change as long as the order stays. O(log n).
  package mutating func update(at rank: Int, _ change: (inout Element) -> Void) {
    precondition(rank >= 0 && rank < count, "no element of this rank")
    root.update(at: rank, change)
  }
}

extension RankedNode {
  /// Changes the element at `offset`, on one way down.
  fileprivate mutating func update(at offset: Int, _ change: (inout Order.Element) -> Void) {
    switch take() {
    case .leaf(var elements):
      change(&elements[offset])
      self = .leaf(elements)
    case .inner(var branches):
      let (index, rest) = Self.place(of: offset, in: branches)
      branches[index].node.update(at: rest, change)
      if rest == 0 { branches[index].first = branches[index].node.firstKey }
      self = .inner(branches)
    }
  }

  /// Changes the elements at `offsets`; `change` gets each with its offset and `base` added.
  fileprivate mutating func update(
    _ offsets: Range<Int>, offsetBy base: Int, _ change: (Int, inout Order.Element) -> Void
  ) {
    switch take() {
    case .leaf(var elements):
      for offset in offsets { change(base + offset, &elements[offset]) }
      self = .leaf(elements)
    case .inner(var branches):
      var before = 0
      for index in branches.indices {
        let count = branches[index].count
        let inside = offsets.clamped(to: before..<before + count)
        if !inside.isEmpty {
          let local = inside.lowerBound - before..<inside.upperBound - before
          branches[index].node.update(local, offsetBy: base + before, change)
          if local.lowerBound == 0 { branches[index].first = branches[index].node.firstKey }
        }
        before += count
      }
      self = .inner(branches)
    }
  }
}
