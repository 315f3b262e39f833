/// A level of a `RecordTree`: 64 slots, selected by 6 bits of a hash, and one to 64 children in the order of their
/// slots.
///
/// Each child has a range of slots, from its own first slot to that of the next child: all 64, or a half of them, or a
/// half of the half, and so on. A full bucket is divided together with its range, so that buckets stay half full or
/// more; a full bucket of a single slot becomes a branch of the next level. (A branch is thus what extendible hashing
/// calls a directory, without the repetitions.)
///
/// A branch with several owners is never mutated: mutating functions take it `inout`, and copy it first if it is
/// shared.
final class RecordBranch: ManagedBuffer<RecordBranchHeader, RecordNode> {
  /// Creates a branch with one child, of which it takes ownership.
  static func make(over child: RecordNode) -> RecordBranch {
    let branch = make(starts: 1, capacity: 4)
    branch.withMemory { _, children in children.initialize(to: child) }
    return branch
  }

  /// Creates a branch with children, of which it takes ownership, each with its first slot; that of the first child is
  /// 0.
  private static func make(over children: [(slot: Int, node: RecordNode)]) -> RecordBranch {
    let branch = make(starts: children.reduce(0) { $0 | 1 << UInt64($1.slot) }, capacity: children.count)
    branch.withMemory { _, nodes in
      for (index, child) in children.enumerated() { (nodes + index).initialize(to: child.node) }
    }
    return branch
  }

  /// Creates a branch whose children the caller must initialize.
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

  /// The number of children.
  var count: Int { withMemory { header, _ in header.pointee.starts.nonzeroBitCount } }

  /// The child at an index.
  subscript(index: Int) -> RecordNode {
    withMemory { header, children in
      precondition(index >= 0 && index < header.pointee.starts.nonzeroBitCount)
      return children[index]
    }
  }

  /// Returns the child that a slot belongs to. It lives as long as the branch does.
  func child(of slot: Int) -> RecordNode {
    withMemory { header, children in children[Self.index(of: slot, header.pointee.starts)] }
  }

  /// Returns the index of the child that a slot belongs to.
  private func index(of slot: Int) -> Int { withMemory { header, _ in Self.index(of: slot, header.pointee.starts) } }

  /// Returns the slots of a child.
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

  /// Copies a branch if it is shared.
  private static func makeUnique(_ branch: inout RecordBranch) {
    if !isKnownUniquelyReferenced(&branch) { branch = branch.copy() }
  }

  /// Sets a child whose predecessor was moved out. Requires a single owner.
  private func put(_ child: RecordNode, at index: Int) { withMemory { _, children in children[index] = child } }

  /// Sets two children in place of one that was moved out; the second begins at `slot`. Requires a single owner.
  private static func put(
    _ low: RecordNode, _ high: RecordNode, at index: Int, from slot: Int, in branch: inout RecordBranch
  ) {
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

  /// Sets one child in place of the two at an index and the next, which were moved out. Requires a single owner.
  private func join(_ child: RecordNode, at index: Int) {
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

  /// Moves all children to an empty branch, and returns that. Requires a single owner.
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

  // MARK: Records

  /// Replaces the record with the same reference below a branch of this level, or adds the record. Returns the previous
  /// record, or nil if there was none. `hash` is that of the record, `mask` the one for making hashes.
  static func update(
    _ record: ObjectRecord, _ hash: RecordHash, mask: UInt64, level: Int, in branch: inout RecordBranch
  ) -> ObjectRecord? {
    makeUnique(&branch)
    let index = branch.index(of: hash.slot(level: level))
    switch branch[index] {
    case .branch(let child):
      var child = child.takeRetainedValue()
      let old = update(record, hash, mask: mask, level: level + 1, in: &child)
      branch.put(.owning(child), at: index)
      return old
    case .bucket(let child):
      var bucket = child.takeRetainedValue()
      var old: ObjectRecord?
      if let position = bucket.position(of: record.reference, tag: hash.tag(level: level)) {
        old = RecordBucket.replace(at: position, with: record, in: &bucket)
      } else if bucket.count >= RecordBucket.limit, level < RecordHash.lastLevel || branch.slots(at: index).count > 1 {
        divide(&bucket, mask: mask, level: level, at: index, in: &branch)
        return update(record, hash, mask: mask, level: level, in: &branch)
      } else {
        RecordBucket.append(record, tag: hash.tag(level: level), to: &bucket)
      }
      branch.put(.owning(bucket), at: index)
      return old
    }
  }

  /// Changes the record of a reference below a branch of this level. Returns false if there is none.
  static func change(
    _ reference: Reference, _ hash: RecordHash, level: Int, in branch: inout RecordBranch,
    _ change: (inout ObjectRecord) -> Void
  ) -> Bool {
    makeUnique(&branch)
    let index = branch.index(of: hash.slot(level: level))
    switch branch[index] {
    case .branch(let child):
      var child = child.takeRetainedValue()
      defer { branch.put(.owning(child), at: index) }
      return self.change(reference, hash, level: level + 1, in: &child, change)
    case .bucket(let child):
      var bucket = child.takeRetainedValue()
      defer { branch.put(.owning(bucket), at: index) }
      guard let position = bucket.position(of: reference, tag: hash.tag(level: level)) else { return false }
      RecordBucket.change(at: position, in: &bucket, change)
      return true
    }
  }

  /// Replaces one bucket, which was moved out, by two; or by a branch, if it has a single slot.
  private static func divide(
    _ bucket: inout RecordBucket, mask: UInt64, level: Int, at index: Int, in branch: inout RecordBranch
  ) {
    let slots = branch.slots(at: index)
    guard slots.count > 1 else {
      let bucket = bucket.retagged { RecordHash(of: $0.reference, mask: mask).tag(level: level + 1) }
      return branch.put(.owning(make(over: .owning(bucket))), at: index)
    }
    let middle = slots.lowerBound + slots.count / 2
    let (low, high) = RecordBucket.divide(&bucket, at: middle)
    put(.owning(low), .owning(high), at: index, from: middle, in: &branch)
  }

  /// Removes the record of a reference, which must exist below a branch of this level, and returns it.
  static func remove(
    _ reference: Reference, _ hash: RecordHash, mask: UInt64, level: Int, from branch: inout RecordBranch
  ) -> ObjectRecord? {
    makeUnique(&branch)
    let index = branch.index(of: hash.slot(level: level))
    let old: ObjectRecord?
    switch branch[index] {
    case .branch(let child):
      var child = child.takeRetainedValue()
      old = remove(reference, hash, mask: mask, level: level + 1, from: &child)
      // A branch with a single bucket is replaced by that bucket.
      if child.count == 1, case .bucket(let bucket) = child[0] {
        let tag = { (record: ObjectRecord) in RecordHash(of: record.reference, mask: mask).tag(level: level) }
        branch.put(.owning(bucket.takeUnretainedValue().retagged(tag)), at: index)
      } else {
        branch.put(.owning(child), at: index)
      }
    case .bucket(let child):
      var bucket = child.takeRetainedValue()
      let position = bucket.position(of: reference, tag: hash.tag(level: level))
      old = position.map { RecordBucket.remove(at: $0, from: &bucket) }
      branch.put(.owning(bucket), at: index)
    }
    branch.merge(around: index)
    return old
  }

  /// Joins a bucket with the other half of the range that it was divided from, and so on, while they have few records.
  private func merge(around index: Int) {
    var index = index
    while let low = lowerHalf(of: index), case .bucket(let left) = self[low], case .bucket(let right) = self[low + 1] {
      let count = left._withUnsafeGuaranteedRef { $0.count } + right._withUnsafeGuaranteedRef { $0.count }
      guard count <= RecordBucket.mergeLimit else { return }
      join(.owning(left.takeRetainedValue().joined(with: right.takeRetainedValue())), at: low)
      index = low
    }
  }

  /// Returns the index of the lower of two halves, one of which is the child at `index`; nil if the other half is
  /// divided itself, or does not exist.
  func lowerHalf(of index: Int) -> Int? {
    let slots = slots(at: index)
    guard slots.count < 64 else { return nil }
    let isLower = slots.lowerBound & slots.count == 0
    let other = self.slots(at: isLower ? index + 1 : index - 1)
    guard other.count == slots.count else { return nil }
    return isLower ? index : index - 1
  }

  // MARK: Building

  typealias Entries = Slice<UnsafeBufferPointer<RecordTree.Entry>>

  /// Creates a branch of this level over records whose hashes agree in the levels above.
  static func make(of entries: Entries, level: Int) -> RecordBranch {
    var children: [(slot: Int, node: RecordNode)] = []
    addNodes(of: entries, slots: 0..<64, level: level, to: &children)
    return make(over: children)
  }

  /// Adds the children for a range of slots: a single one, or those of both halves.
  private static func addNodes(
    of entries: Entries, slots: Range<Int>, level: Int, to children: inout [(slot: Int, node: RecordNode)]
  ) {
    if entries.count <= RecordBucket.limit || (slots.count == 1 && level == RecordHash.lastLevel) {
      return children.append((slots.lowerBound, .owning(RecordBucket.make(of: entries, level: level))))
    }
    guard slots.count > 1 else {
      return children.append((slots.lowerBound, .owning(make(of: entries, level: level + 1))))
    }
    let middle = slots.lowerBound + slots.count / 2
    let boundary = entries.boundary { $0.hash.slot(level: level) < middle }
    addNodes(of: entries[..<boundary], slots: slots.lowerBound..<middle, level: level, to: &children)
    addNodes(of: entries[boundary...], slots: middle..<slots.upperBound, level: level, to: &children)
  }
}

extension RecordBranch.Entries {
  /// Returns the index after the last entry for which `isBefore` returns true; all of these must come first.
  fileprivate func boundary(_ isBefore: (RecordTree.Entry) -> Bool) -> Int {
    var (low, high) = (startIndex, endIndex)
    while low < high {
      let middle = (low + high) / 2
      if isBefore(self[middle]) { low = middle + 1 } else { high = middle }
    }
    return low
  }
}

/// The slots at which the children of a `RecordBranch` begin, and its capacity.
struct RecordBranchHeader {
  /// A bit for each slot at which a child begins: the first is always set.
  var starts: UInt64
  let capacity: Int
}

/// A child of a branch: a bucket, or a branch of the next level. The branch counts as one owner of it.
///
/// Unmanaged, so that a lookup counts no references on its way down: every reading thread would write each of them. It
/// may be read while the branch above is retained; only `RecordBranch` retains and releases it.
enum RecordNode {
  case bucket(Unmanaged<RecordBucket>)
  case branch(Unmanaged<RecordBranch>)

  /// Returns a node for a branch, with a reference that the branch will own.
  static func owning(_ bucket: RecordBucket) -> RecordNode { .bucket(.passRetained(bucket)) }

  /// Returns a node for a branch, with a reference that the branch will own.
  static func owning(_ branch: RecordBranch) -> RecordNode { .branch(.passRetained(branch)) }

  /// Adds an owner.
  fileprivate func retain() {
    switch self {
    case .bucket(let bucket): _ = bucket.retain()
    case .branch(let branch): _ = branch.retain()
    }
  }

  /// Removes an owner.
  fileprivate func release() {
    switch self {
    case .bucket(let bucket): bucket.release()
    case .branch(let branch): branch.release()
    }
  }
}
