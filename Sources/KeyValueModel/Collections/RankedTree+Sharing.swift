extension RankedTree {
  /// The elements of the nodes that two trees do not share, in order: where one came from a copy of the other by k
  /// changes, about k nodes' elements, among them all that the trees do not have in common. O(n) in nodes, not
  /// elements.
  package static func unshared(_ left: RankedTree, _ right: RankedTree) -> (left: [Element], right: [Element]) {
    let leftNodes = left.root.identities
    let rightNodes = right.root.identities
    var found: (left: [Element], right: [Element]) = ([], [])
    left.root.appendElements(notBelow: rightNodes, to: &found.left)
    right.root.appendElements(notBelow: leftNodes, to: &found.right)
    return found
  }
}

extension RankedNode {
  /// The storage of this node and of all below it.
  fileprivate var identities: Set<UnsafeRawPointer> {
    var identities: Set<UnsafeRawPointer> = []
    collectIdentities(into: &identities)
    return identities
  }

  private func collectIdentities(into identities: inout Set<UnsafeRawPointer>) {
    if let identity { identities.insert(identity) }
    guard case .inner(let branches) = self else { return }
    for branch in branches { branch.node.collectIdentities(into: &identities) }
  }

  /// Where the node's entries are; trees that hold the same entries at the same place share them.
  private var identity: UnsafeRawPointer? {
    switch self {
    case .leaf(let elements): elements.withUnsafeBufferPointer { $0.baseAddress.map { UnsafeRawPointer($0) } }
    case .inner(let branches): branches.withUnsafeBufferPointer { $0.baseAddress.map { UnsafeRawPointer($0) } }
    }
  }

  fileprivate func appendElements(notBelow shared: Set<UnsafeRawPointer>, to elements: inout [Order.Element]) {
    if let identity, shared.contains(identity) { return }
    switch self {
    case .leaf(let own): elements += own
    case .inner(let branches): for branch in branches { branch.node.appendElements(notBelow: shared, to: &elements) }
    }
  }
}
