extension RankedTree {
  /// A tree of elements that are in order already, no two equal: a mistake is found by `checkInvariants` only. O(n).
  package init(sorted elements: some Sequence<Element>) {
    var nodes = Self.sharedOut(Array(elements)).map { RankedNode<Order>.leaf(Array($0)) }
    while nodes.count > 1 {
      nodes = Self.sharedOut(nodes.map(\.branch)).map { .inner(Array($0)) }
    }
    root = nodes[0]
  }

  /// The entries in runs of nearly equal length, each full to about three quarters so that there is room for more.
  private static func sharedOut<Entry>(_ entries: [Entry]) -> [ArraySlice<Entry>] {
    let maximum = RankedNode<Order>.maximum
    guard entries.count > maximum else { return [entries[...]] }
    let width = maximum * 3 / 4
    let runs = (entries.count + width - 1) / width
    return (0..<runs).map { entries[$0 * entries.count / runs..<($0 + 1) * entries.count / runs] }
  }
}
