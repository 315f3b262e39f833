extension RecordBranch {
  /// Puts a record in the place of the one with the same reference, below a branch of this level; gives that, nil where
  /// there is none and the record is new. `hash` is the record's, `mask` what hashes are made with.
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

  /// Changes the record of a reference below a branch of this level; says whether there is one.
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

  /// Sets two buckets in the place of one that was taken; or a branch, where it has a single slot.
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

  /// Takes away the record of a reference, which is there, below a branch of this level; gives it.
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
      // A branch with one bucket is no more than that bucket.
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

  /// Joins a bucket with the other half of the range that it was divided from, and so on, as long as they are few.
  private func merge(around index: Int) {
    var index = index
    while let low = lowerHalf(of: index), case .bucket(let left) = self[low], case .bucket(let right) = self[low + 1] {
      let count = left._withUnsafeGuaranteedRef { $0.count } + right._withUnsafeGuaranteedRef { $0.count }
      guard count <= RecordBucket.mergeLimit else { return }
      join(.owning(left.takeRetainedValue().joined(with: right.takeRetainedValue())), at: low)
      index = low
    }
  }

  /// The index of the lower of two halves, one of which is the child at `index`; nil where the other is divided itself,
  /// and where there is none.
  func lowerHalf(of index: Int) -> Int? {
    let slots = slots(at: index)
    guard slots.count < 64 else { return nil }
    let isLower = slots.lowerBound & slots.count == 0
    let other = self.slots(at: isLower ? index + 1 : index - 1)
    guard other.count == slots.count else { return nil }
    return isLower ? index : index - 1
  }
}
