extension RankedTree {
  /// What is wrong with the tree: the widths of nodes, their depth, the counts and first keys of branches, the order.
  /// Empty where all is well. For tests; O(n).
  package func checkInvariants() -> [String] {
    var faults: [String] = []
    _ = root.check(isRoot: true, &faults)
    var last: Key?
    for element in self {
      let key = Order.key(of: element)
      if let last, !Order.precedes(last, key) { faults.append("\(last) does not precede \(key)") }
      last = key
    }
    return faults
  }
}

extension RankedNode {
  /// Checks the node and all below; gives the depth below it.
  fileprivate func check(isRoot: Bool, _ faults: inout [String]) -> Int {
    if width > Self.maximum { faults.append("a node has \(width) entries") }
    if !isRoot, width < Self.minimum { faults.append("a node has only \(width) entries") }
    guard case .inner(let branches) = self else { return 0 }
    if branches.count < 2 { faults.append("a root has only one branch") }
    var depths: Set<Int> = []
    for branch in branches {
      let below = branch.node.branch
      if branch.count != below.count { faults.append("a branch says \(branch.count), its node \(below.count)") }
      if Order.precedes(branch.first, below.first) || Order.precedes(below.first, branch.first) {
        faults.append("a branch begins with \(branch.first), its node with \(below.first)")
      }
      depths.insert(branch.node.check(isRoot: false, &faults))
    }
    if depths.count != 1 { faults.append("leaves of depths \(depths.sorted())") }
    return 1 + (depths.max() ?? 0)
  }
}
