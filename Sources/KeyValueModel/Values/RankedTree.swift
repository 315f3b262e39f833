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
  private var root: RankedNode<Order>

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

  // MARK: Building

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

  // MARK: Changing

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

  // MARK: Sharing

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

  // MARK: Invariants

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

/// An order in which a `RankedTree` keeps its elements: by a key of each element, which may be the element itself.
///
/// `precedes` must be a strict total order of the keys: of two keys neither of which precedes the other, the tree holds
/// one at most.
package protocol RankedOrder: Sendable {
  /// What the tree holds.
  associatedtype Element: Sendable
  /// What the elements are ordered by, and found by. Copied often: best when it is small and trivial.
  associatedtype Key: Sendable = Element

  /// The key of an element. Must not change while the element is in a tree.
  static func key(of element: Element) -> Key

  /// Whether `left` comes before `right`.
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

  // MARK: Insertion

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

  // MARK: Removal

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

  // MARK: Updates

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

  // MARK: Invariants

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

/// A node below another one, with what the upper one must know about it.
private struct RankedBranch<Order: RankedOrder>: Sendable {
  /// The key of the first element below.
  var first: Order.Key
  /// How many elements are below.
  var count: Int
  /// The node below.
  var node: RankedNode<Order>
}
