@testable import KeyValueModel

extension RecordTree {
  /// Returns the faults of the tree: records in wrong places, wrong tags, nodes that should be divided or joined. Empty
  /// if there are none. O(n).
  func checkInvariants() -> [String] {
    var check = Check(tree: self)
    if let root { check.visit(root, level: 0) }
    if check.count != count { check.faults.append("\(check.count) records where \(count) should be") }
    if count == 0, root != nil { check.faults.append("an empty tree has a root") }
    return check.faults
  }

  /// The number of branches and buckets. O(n).
  var nodeCount: Int {
    var check = Check(tree: self)
    if let root { check.visit(root, level: 0) }
    return check.nodes
  }

  private struct Check {
    let tree: RecordTree
    var faults: [String] = []
    var count = 0
    var nodes = 0

    mutating func visit(_ branch: RecordBranch, level: Int) {
      nodes += 1
      if level > 0, branch.count == 1, case .bucket(let bucket) = branch[0],
        bucket._withUnsafeGuaranteedRef({ $0.count }) <= RecordBucket.mergeLimit
      {
        faults.append("a branch has nothing but a small bucket")
      }
      for index in 0..<branch.count {
        let slots = branch.slots(at: index)
        if slots.count.nonzeroBitCount != 1 || slots.lowerBound % slots.count != 0 {
          faults.append("a child has the slots \(slots)")
        }
        switch branch[index] {
        case .branch(let child):
          if slots.count > 1 { faults.append("a branch has the slots \(slots)") }
          visit(child.takeUnretainedValue(), level: level + 1)
        case .bucket(let child): visit(child.takeUnretainedValue(), slots, level: level)
        }
        if let low = branch.lowerHalf(of: index), low == index { checkHalves(branch, low) }
      }
    }

    private mutating func visit(_ bucket: RecordBucket, _ slots: Range<Int>, level: Int) {
      nodes += 1
      count += bucket.count
      let isDivisible = slots.count > 1 || level < RecordHash.lastLevel
      if isDivisible, bucket.count > RecordBucket.limit { faults.append("a bucket has \(bucket.count) records") }
      if bucket.room >= bucket.count + 12 { faults.append("\(bucket.count) records in \(bucket.room)") }
      for position in 0..<bucket.count {
        let reference = bucket[position].reference
        let hash = RecordHash(of: reference, mask: tree.hashMask)
        if !slots.contains(hash.slot(level: level)) { faults.append("\(reference) is in a wrong bucket") }
        if hash.tag(level: level) != bucket.tag(at: position) { faults.append("\(reference) has a wrong tag") }
        if tree[reference] == nil { faults.append("\(reference) is not found") }
      }
    }

    private mutating func checkHalves(_ branch: RecordBranch, _ low: Int) {
      guard case .bucket(let left) = branch[low], case .bucket(let right) = branch[low + 1] else { return }
      let count = left.takeUnretainedValue().count + right.takeUnretainedValue().count
      if count <= RecordBucket.mergeLimit { faults.append("two halves have only \(count) records") }
    }
  }
}
