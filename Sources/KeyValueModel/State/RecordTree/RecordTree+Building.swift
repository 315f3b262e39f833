extension RecordTree {
  /// A record with the way to it, which is worked out while the record is in a cache.
  struct Entry: HashOrdered {
    let hash: RecordHash
    let record: ObjectRecord

    /// A record of a tree whose hashes all count.
    init(_ record: ObjectRecord, mask: UInt64 = .max) {
      hash = RecordHash(of: record.reference, mask: mask)
      self.record = record
    }

    var order: UInt64 { hash.bits }
  }

  /// A tree of records, which come with their hashes and in the order of these. O(n): each node is made once, and no
  /// record is looked at, which would seldom be in a cache, unless its hash is another's, too.
  ///
  /// Throws the name of a record that is there twice.
  init(sorted entries: [Entry], hashMask: UInt64 = .max) throws(Repetition) {
    try Self.check(entries)
    let root = entries.withUnsafeBufferPointer { entries in
      entries.isEmpty ? nil : RecordBranch.make(of: entries[...], level: 0)
    }
    self.init(root: root, count: entries.count, hashMask: hashMask)
  }

  /// That two records have one name.
  struct Repetition: Error {
    let reference: Reference
  }

  private static func check(_ entries: [Entry]) throws(Repetition) {
    var first = 0
    for index in entries.indices.dropFirst() {
      if entries[first].order != entries[index].order { first = index }
      for other in first..<index where entries[other].record.isNamed(entries[index].record.reference) {
        throw Repetition(reference: entries[index].record.reference)
      }
    }
  }
}

extension RecordBranch {
  typealias Entries = Slice<UnsafeBufferPointer<RecordTree.Entry>>

  /// A branch of this level over records whose hashes agree in the levels above.
  fileprivate static func make(of entries: Entries, level: Int) -> RecordBranch {
    var children: [(slot: Int, node: RecordNode)] = []
    addNodes(of: entries, slots: 0..<64, level: level, to: &children)
    return make(over: children)
  }

  /// Adds the children that have some slots: one, or those of both halves.
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
  /// Where those end that are before something, which all come first.
  fileprivate func boundary(_ isBefore: (RecordTree.Entry) -> Bool) -> Int {
    var (low, high) = (startIndex, endIndex)
    while low < high {
      let middle = (low + high) / 2
      if isBefore(self[middle]) { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
