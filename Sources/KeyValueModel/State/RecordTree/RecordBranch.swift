/// Which slots of a `RecordBranch` its children begin at, and how many it has room for.
struct RecordBranchHeader {
  /// A bit for each slot at which a child begins: the first is always set.
  var starts: UInt64
  let capacity: Int
}

/// A level of a `RecordTree`: 64 slots, which 6 bits of a hash choose from, and one to 64 children in their order.
///
/// A child has a range of slots to itself, from the one at which it begins to the next that begins: 64 slots, or a half
/// of that, or a half of the half. A bucket that is full is divided with its range, so that buckets are full by half
/// and more; one that has a single slot becomes a branch of the next level. (So a branch is what extendible hashing
/// calls a directory, without the repetitions.)
///
/// One with several owners is never changed: what changes a branch takes it `inout` and copies it first where it is
/// shared.
final class RecordBranch: ManagedBuffer<RecordBranchHeader, RecordNode> {
  /// A branch with one child, which it owns from now on.
  static func make(over child: RecordNode) -> RecordBranch {
    let branch = make(starts: 1, capacity: 4)
    branch.withMemory { _, children in children.initialize(to: child) }
    return branch
  }

  /// A branch with children, which it owns from now on, each from its slot on: the first from the first.
  static func make(over children: [(slot: Int, node: RecordNode)]) -> RecordBranch {
    let branch = make(starts: children.reduce(0) { $0 | 1 << UInt64($1.slot) }, capacity: children.count)
    branch.withMemory { _, nodes in
      for (index, child) in children.enumerated() { (nodes + index).initialize(to: child.node) }
    }
    return branch
  }

  /// A branch whose children are to be initialized by the caller.
  private static func make(starts: UInt64, capacity: Int) -> RecordBranch {
    let buffer = create(minimumCapacity: capacity) { _ in RecordBranchHeader(starts: starts, capacity: capacity) }
    return unsafeDowncast(buffer, to: RecordBranch.self)
  }

  deinit {
    withMemory { header, children in
      for index in 0..<header.pointee.starts.nonzeroBitCount { children[index].release() }
    }
  }

  private func withMemory<Result>(
    _ body: (UnsafeMutablePointer<RecordBranchHeader>, UnsafeMutablePointer<RecordNode>) -> Result
  ) -> Result {
    withUnsafeMutablePointers { header, children in body(header, children) }
  }

  // MARK: Reading

  /// How many children it has.
  var count: Int { withMemory { header, _ in header.pointee.starts.nonzeroBitCount } }

  /// The child at an index.
  subscript(index: Int) -> RecordNode {
    withMemory { header, children in
      precondition(index >= 0 && index < header.pointee.starts.nonzeroBitCount)
      return children[index]
    }
  }

  /// The child that a slot belongs to. What it gives lives as long as the branch does.
  func child(of slot: Int) -> RecordNode {
    withMemory { header, children in children[Self.index(of: slot, header.pointee.starts)] }
  }

  /// The index of the child that a slot belongs to.
  func index(of slot: Int) -> Int { withMemory { header, _ in Self.index(of: slot, header.pointee.starts) } }

  /// The slots of a child.
  func slots(at index: Int) -> Range<Int> {
    withMemory { header, _ in
      var starts = header.pointee.starts
      for _ in 0..<index { starts &= starts - 1 }
      let rest = starts & (starts - 1)
      return starts.trailingZeroBitCount..<rest.trailingZeroBitCount
    }
  }

  private static func index(of slot: Int, _ starts: UInt64) -> Int {
    (starts & (UInt64.max &>> UInt64(63 - slot))).nonzeroBitCount - 1
  }

  // MARK: Changing

  /// Copies a branch that is shared.
  static func makeUnique(_ branch: inout RecordBranch) {
    if !isKnownUniquelyReferenced(&branch) { branch = branch.copy() }
  }

  /// Sets a child whose predecessor was taken. Only for one owner.
  func put(_ child: RecordNode, at index: Int) { withMemory { _, children in children[index] = child } }

  /// Sets two children in the place of one that was taken; the second begins at `slot`. Only for one owner.
  static func put(_ low: RecordNode, _ high: RecordNode, at index: Int, from slot: Int, in branch: inout RecordBranch) {
    let count = branch.count
    if count == branch.withMemory({ header, _ in header.pointee.capacity }) {
      branch = branch.emptied(into: make(starts: 0, capacity: min(64, count + max(4, count / 4 & ~1))))
    }
    branch.withMemory { header, children in
      (children + index + 2).update(from: children + index + 1, count: count - index - 1)
      children[index] = low
      children[index + 1] = high
      header.pointee.starts |= 1 << UInt64(slot)
    }
  }

  /// Sets one child in the place of two that were taken, at an index and the next. Only for one owner.
  func join(_ child: RecordNode, at index: Int) {
    let slot = slots(at: index + 1).lowerBound
    withMemory { header, children in
      let count = header.pointee.starts.nonzeroBitCount
      children[index] = child
      (children + index + 1).update(from: children + index + 2, count: count - index - 2)
      header.pointee.starts &= ~(1 << UInt64(slot))
    }
  }

  private func copy() -> RecordBranch {
    withMemory { header, children in
      let count = header.pointee.starts.nonzeroBitCount
      let copy = Self.make(starts: header.pointee.starts, capacity: header.pointee.capacity)
      copy.withMemory { _, newChildren in newChildren.initialize(from: children, count: count) }
      for index in 0..<count { children[index].retain() }
      return copy
    }
  }

  /// Moves everything to an empty branch, which is given back. Only for one owner.
  private func emptied(into other: RecordBranch) -> RecordBranch {
    withMemory { header, children in
      other.withMemory { newHeader, newChildren in
        newChildren.initialize(from: children, count: header.pointee.starts.nonzeroBitCount)
        newHeader.pointee.starts = header.pointee.starts
      }
      header.pointee.starts = 0
    }
    return other
  }
}
