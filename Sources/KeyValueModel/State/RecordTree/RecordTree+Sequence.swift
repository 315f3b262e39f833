extension RecordTree: Sequence {
  /// Every object with its name, in no order.
  func makeIterator() -> Iterator { Iterator(root) }

  /// How many there are.
  var underestimatedCount: Int { count }

  /// The names of all objects, in no order. O(n).
  var references: [Reference] {
    var references: [Reference] = []
    references.reserveCapacity(count)
    for (reference, _) in self { references.append(reference) }
    return references
  }

  /// Goes through the objects of a tree.
  struct Iterator: IteratorProtocol {
    /// The branches on the way to the bucket, each with the index of the child that comes after it.
    private var path: [(branch: RecordBranch, next: Int)] = []
    private var bucket: RecordBucket?
    private var position = 0

    init(_ root: RecordBranch?) {
      if let root { path.append((root, 0)) }
    }

    /// The next object.
    mutating func next() -> (key: Reference, value: ObjectRecord)? {
      while true {
        if let bucket, position < bucket.count {
          let record = bucket[position]
          position += 1
          return (record.reference, record)
        }
        guard nextBucket() else { return nil }
      }
    }

    private mutating func nextBucket() -> Bool {
      position = 0
      while let (branch, next) = path.last {
        guard next < branch.count else {
          path.removeLast()
          continue
        }
        path[path.count - 1].next += 1
        switch branch[next] {
        case .bucket(let child):
          bucket = child.takeUnretainedValue()
          return true
        case .branch(let child): path.append((child.takeUnretainedValue(), 0))
        }
      }
      bucket = nil
      return false
    }
  }
}
