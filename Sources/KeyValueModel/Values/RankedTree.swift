/// A sorted collection in which each element has a rank: a counted B+ tree.
///
/// Persistent: a copy costs O(1) and shares everything, and a change of a shared tree copies only the nodes on one
/// path. Every operation that finds or changes one element costs at most O(log n) comparisons, and a step of an
/// iteration O(1). Nodes have 8 to 24 entries. Of the maxima 12, 16, 24, 32 and 48, the fastest were 24 and 32 for
/// inserting or removing one member of 1,000 or 100,000 while an older copy exists, and they were not slower to search
/// than the others.
package struct RankedTree<Order: RankedOrder>: Sendable {
  /// The type of the elements.
  package typealias Element = Order.Element
  /// The type of the keys by which elements are found.
  package typealias Key = Order.Key

  /// The only stored property: a tree is a single word, so that types that contain one stay small.
  private var root: RankedNode<Order>

  /// Creates an empty tree, without an allocation.
  package init() {
    root = .leaf([])
  }

  /// The number of elements. O(1): a sum over the entries of the root.
  package var count: Int { root.count }

  /// The number of elements that precede `key`: the rank of the first element that does not, or `count`. O(log n).
  package func lowerBound(of key: Key) -> Int { root.search(key).rank }

  /// The number of elements that precede `key` or are equal to it. O(log n).
  package func upperBound(of key: Key) -> Int {
    let (rank, isFound) = root.search(key)
    return isFound ? rank + 1 : rank
  }

  /// The number of elements that precede `key`, and whether the next element is equal to it. O(log n).
  package func place(of key: Key) -> (rank: Int, isFound: Bool) { root.search(key) }

  /// The rank of the element with this key; nil if there is none. O(log n).
  package func rank(of key: Key) -> Int? {
    let (rank, isFound) = root.search(key)
    return isFound ? rank : nil
  }

  /// Returns true if there is an element with this key. O(log n).
  package func contains(_ key: Key) -> Bool { root.search(key).isFound }

  /// The element with this key; nil if there is none. O(log n).
  package func element(for key: Key) -> Element? { rank(of: key).map(root.element) }

  /// The element at a rank, which must be at least 0 and less than `count`. O(log n), without a comparison.
  package func element(at rank: Int) -> Element {
    precondition(rank >= 0 && rank < count, "no element of this rank")
    return root.element(at: rank)
  }

  /// Returns true if both are copies of one tree that have not changed since, and therefore equal. O(1). False does not
  /// mean that they differ.
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

  // MARK: Building

  /// Creates a tree of elements that are sorted already and distinct. Only `checkInvariants` detects a violation. O(n).
  package init(sorted elements: some Sequence<Element>) {
    var nodes = Self.sharedOut(Array(elements)).map { RankedNode<Order>.leaf(Array($0)) }
    while nodes.count > 1 {
      nodes = Self.sharedOut(nodes.map(\.branch)).map { .inner(Array($0)) }
    }
    root = nodes[0]
  }

  /// The entries in runs of nearly equal length, each about three quarters full so that there is room for more.
  private static func sharedOut<Entry>(_ entries: [Entry]) -> [ArraySlice<Entry>] {
    let maximum = RankedNode<Order>.maximum
    guard entries.count > maximum else { return [entries[...]] }
    let width = maximum * 3 / 4
    let runs = (entries.count + width - 1) / width
    return (0..<runs).map { entries[$0 * entries.count / runs..<($0 + 1) * entries.count / runs] }
  }

  // MARK: Changing

  /// Inserts an element. Returns its rank; returns nil, and changes nothing, if there is an element with an equal key.
  /// O(log n).
  @discardableResult
  package mutating func insert(_ element: Element) -> Int? {
    let (rank, isFound) = root.search(Order.key(of: element))
    guard !isFound else { return nil }
    insert(element, at: rank)
    return rank
  }

  /// Inserts an element whose rank the caller knows: all elements before `rank` precede it, and it precedes all others.
  /// O(log n), without a comparison. With a wrong rank the tree is no longer sorted.
  package mutating func insert(_ element: Element, at rank: Int) {
    precondition(rank >= 0 && rank <= count, "no such rank")
    guard let sibling = root.insert(element, at: rank) else { return }
    let first = root.branch
    root = .inner([first, sibling.branch])
  }

  /// Removes the element with this key. Returns its former rank and the element, or nil if there is none. O(log n).
  @discardableResult
  package mutating func remove(_ key: Key) -> (rank: Int, element: Element)? {
    guard let rank = rank(of: key) else { return nil }
    return (rank, remove(at: rank))
  }

  /// Removes and returns the element at a rank, which must be at least 0 and less than `count`. O(log n), without a
  /// comparison.
  @discardableResult
  package mutating func remove(at rank: Int) -> Element {
    precondition(rank >= 0 && rank < count, "no element of this rank")
    let element = root.remove(at: rank)
    if case .inner(let branches) = root, branches.count == 1 { root = branches[0].node }
    return element
  }

  /// Removes all elements. O(1), plus the cost of freeing nodes that no copy shares.
  package mutating func removeAll() { self = RankedTree() }

  /// Changes the elements at these ranks in place, in order; `change` receives each with its rank. Keys may change as
  /// long as the order does not. O(k + log n) for k elements.
  package mutating func update(_ ranks: Range<Int>, _ change: (Int, inout Element) -> Void) {
    precondition(ranks.lowerBound >= 0 && ranks.upperBound <= count, "no elements of these ranks")
    root.update(ranks, offsetBy: 0, change)
  }

  /// Changes the element at a rank in place; its key may change as long as the order does not. O(log n).
  package mutating func update(at rank: Int, _ change: (inout Element) -> Void) {
    precondition(rank >= 0 && rank < count, "no element of this rank")
    root.update(at: rank, change)
  }

  // MARK: Sharing

  /// Returns the elements of the nodes that two trees do not share, in order. If one tree came from a copy of the other
  /// by k changes, these are the elements of about k nodes, among them all elements that the trees do not have in
  /// common. O(n) in nodes, not elements.
  package static func unshared(_ left: RankedTree, _ right: RankedTree) -> (left: [Element], right: [Element]) {
    let leftNodes = left.root.identities
    let rightNodes = right.root.identities
    var found: (left: [Element], right: [Element]) = ([], [])
    left.root.appendElements(notBelow: rightNodes, to: &found.left)
    right.root.appendElements(notBelow: leftNodes, to: &found.right)
    return found
  }

  // MARK: Invariants

  /// Returns the inconsistencies of the tree: in the widths of nodes, their depth, the counts and first keys of
  /// branches, and the order; empty if there are none. For tests; O(n).
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

extension RankedTree: RandomAccessCollection {
  /// The rank of the first element.
  package var startIndex: Int { 0 }
  /// The rank after the last element.
  package var endIndex: Int { count }

  /// The element at a rank. O(log n); an iteration is faster than a subscript for each rank.
  package subscript(rank: Int) -> Element { element(at: rank) }

  /// The first element; nil if the tree is empty. O(log n), without a comparison.
  package var first: Element? { count == 0 ? nil : root.element(at: 0) }

  /// The last element; nil if the tree is empty. O(log n), without a comparison.
  package var last: Element? { count == 0 ? nil : root.element(at: count - 1) }

  /// The elements in order.
  package func makeIterator() -> Iterator { Iterator(root, from: 0) }

  /// Returns an iterator over the elements from the one at `rank` on, which must be at least 0. It is empty if `rank`
  /// is not less than `count`. O(log n), and then O(1) for each step.
  package func makeIterator(from rank: Int) -> Iterator { Iterator(root, from: rank) }

  /// Iterates over the leaves; a step costs O(1) on average.
  package struct Iterator: IteratorProtocol, Sendable {
    private var elements: [Element] = []
    private var index = 0
    /// The nodes above the leaf, from the root down, each with the index of the branch after this leaf.
    private var path: [(branches: [RankedBranch<Order>], next: Int)] = []

    fileprivate init(_ root: RankedNode<Order>, from rank: Int) {
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

    /// The next element; nil after the last one.
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

/// The order of the elements of a `RankedTree`: by a key of each element, which may be the element itself.
///
/// `precedes` must be a strict total order of the keys. If neither of two keys precedes the other, the tree holds at
/// most one of them.
package protocol RankedOrder: Sendable {
  /// The type of the elements.
  associatedtype Element: Sendable
  /// The type of the keys by which elements are sorted and found. Keys are copied often, so a small and trivial type is
  /// best.
  associatedtype Key: Sendable = Element

  /// The key of an element. Must not change while the element is in a tree.
  static func key(of element: Element) -> Key

  /// Returns true if `left` comes before `right`.
  static func precedes(_ left: Key, _ right: Key) -> Bool
}

extension RankedOrder where Key == Element {
  /// The element itself.
  package static func key(of element: Element) -> Key { element }
}

/// A node of a `RankedTree`: elements in order, or the nodes below.
///
/// Nodes are arrays, so that a node that a copy of the tree shares is copied when it is changed, and one that no copy
/// shares is changed in place. All leaves have the same depth. A node that is not the root has at least `minimum` and
/// at most `maximum` entries; a root that is not a leaf has at least two.
private enum RankedNode<Order: RankedOrder>: Sendable {
  /// The elements themselves.
  case leaf([Order.Element])
  /// The branches to the nodes below, in order.
  case inner([RankedBranch<Order>])

  /// The maximum number of entries in a node, chosen by measurement: see `RankedTree`.
  static var maximum: Int { 24 }
  /// The minimum number of entries in a node below the root. Less than half of the maximum, so that a node that was
  /// just split does not merge again at the next removal.
  static var minimum: Int { 8 }

  /// Returns the node and leaves an empty leaf, so that its array has one owner less and can be changed in place.
  mutating func take() -> RankedNode {
    var node = RankedNode.leaf([])
    swap(&node, &self)
    return node
  }

  /// The number of entries of the node itself.
  var width: Int {
    switch self {
    case .leaf(let elements): elements.count
    case .inner(let branches): branches.count
    }
  }

  /// The number of elements in and below the node. Reads each of its entries.
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

  // MARK: Looking

  /// The element at `offset`, which must exist.
  func element(at offset: Int) -> Order.Element {
    switch self {
    case .leaf(let elements): return elements[offset]
    case .inner(let branches):
      let (index, rest) = Self.place(of: offset, in: branches)
      return branches[index].node.element(at: rest)
    }
  }

  /// The number of elements that precede `key`, and whether the next element is equal to it.
  func search(_ key: Order.Key) -> (rank: Int, isFound: Bool) {
    switch self {
    case .leaf(let elements):
      let rank = Self.lowerBound(elements.count) { Order.precedes(Order.key(of: elements[$0]), key) }
      return (rank, rank < elements.count && !Order.precedes(key, Order.key(of: elements[rank])))
    case .inner(let branches):
      // The last branch that does not begin after the key, or the first branch if all do.
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

  /// The first of `count` indices for which `isBefore` is false; it must be false for all indices after that. `count`
  /// if there is none.
  private static func lowerBound(_ count: Int, _ isBefore: (Int) -> Bool) -> Int {
    var low = 0
    var high = count
    while low < high {
      let middle = (low + high) / 2
      if isBefore(middle) { low = middle + 1 } else { high = middle }
    }
    return low
  }

  // MARK: Insertion

  /// Inserts `element`, which belongs at `offset`. Returns the node that now follows this one if the node had to be
  /// split.
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
    // An element between two branches is appended to the left one, so that it becomes the first element of no branch
    // but the first.
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

  /// Removes and returns the second half of the entries if there are too many.
  static func split<Entry>(_ entries: inout [Entry]) -> [Entry]? {
    guard entries.count > maximum else { return nil }
    let middle = entries.count / 2
    let second = Array(entries[middle...])
    entries.removeSubrange(middle...)
    return second
  }

  // MARK: Removal

  /// Removes and returns the element at `offset`. The node may be left with too few entries or none; the caller repairs
  /// that.
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
    // The left branch may be the one with too few entries, and may have lost its first element.
    branches[left].first = branches[left].node.firstKey
    guard let sibling else { return }
    let branch = sibling.branch
    branches[left].count -= branch.count
    branches.insert(branch, at: left + 1)
  }

  /// Appends the entries of the next node, which has the same depth. Returns the second half as a new node if there are
  /// too many.
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

  // MARK: Updates

  /// Changes the element at `offset`, on a single path down.
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

  /// Changes the elements at `offsets`; `change` receives each with its offset plus `base`.
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

  // MARK: Sharing

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

  /// The address of the node's entries. Trees with the same entries at the same address share them.
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

  // MARK: Invariants

  /// Checks the node and all nodes below it. Returns the depth below the node.
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

/// A child of a node, with the information that the parent needs about it.
private struct RankedBranch<Order: RankedOrder>: Sendable {
  /// The key of the first element below.
  var first: Order.Key
  /// The number of elements below.
  var count: Int
  /// The node below.
  var node: RankedNode<Order>
}
