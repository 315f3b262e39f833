/// The objects of an entity, found by their references: a hash trie of buckets of records.
///
/// Persistent: a copy costs O(1) and shares everything with the original. Looking one up costs O(log₆₄ n) steps and
/// counts no references but the record's; a change copies as many nodes at the most, and none that has one owner.
/// The records hold their references, so that an object takes a word, a tag and its share of the nodes: about 15
/// bytes.
///
/// `@unchecked Sendable`: nodes that have more than one owner are never changed, and neither are records.
struct RecordTree: @unchecked Sendable {
  /// Nil where there is nothing.
  private(set) var root: RecordBranch?
  /// How many objects there are.
  private(set) var count = 0
  /// The bits of hashes that count.
  let hashMask: UInt64

  /// An empty tree, which allocates nothing. Of the hashes it looks only at those bits that `hashMask` has: with few of
  /// them many are equal, which must cost no more than time.
  init(hashMask: UInt64 = .max) {
    self.init(root: nil, count: 0, hashMask: hashMask)
  }

  /// A tree of so many objects below a root.
  private init(root: RecordBranch?, count: Int, hashMask: UInt64) {
    self.root = root
    self.count = count
    self.hashMask = hashMask
  }

  /// The way to the object of this name, whether or not there is one.
  func hash(of reference: Reference) -> RecordHash { RecordHash(of: reference, mask: hashMask) }

  /// The object of this name, nil where there is none.
  subscript(reference: Reference) -> ObjectRecord? { self[reference, hash(of: reference)] }

  /// The same, where the hash is known.
  subscript(reference: Reference, hash: RecordHash) -> ObjectRecord? {
    guard let root else { return nil }
    return withExtendedLifetime(root) {
      var node = root.child(of: hash.slot(level: 0))
      var level = 1
      while case .branch(let branch) = node {
        node = branch._withUnsafeGuaranteedRef { $0.child(of: hash.slot(level: level)) }
        level += 1
      }
      guard case .bucket(let bucket) = node else { return nil }
      return bucket._withUnsafeGuaranteedRef { $0.record(reference, tag: hash.tag(level: level - 1)) }
    }
  }

  /// Puts an object in the place of the one of its name; gives that, nil where there was none.
  @discardableResult
  mutating func update(_ record: ObjectRecord) -> ObjectRecord? { update(record, hash(of: record.reference)) }

  /// The same, where the hash of its name is known.
  @discardableResult
  mutating func update(_ record: ObjectRecord, _ hash: RecordHash) -> ObjectRecord? {
    // Taken out meanwhile: with a second owner each branch would be copied.
    var branch = root.take() ?? .make(over: .owning(RecordBucket.make(capacity: 4)))
    let old = RecordBranch.update(record, hash, mask: hashMask, level: 0, in: &branch)
    root = branch
    if old == nil { count += 1 }
    return old
  }

  /// Changes the object of this name, in place as far as there is no other owner; says whether there is one.
  mutating func change(_ reference: Reference, _ change: (inout ObjectRecord) -> Void) -> Bool {
    guard var branch = root.take() else { return false }
    defer { root = branch }
    return RecordBranch.change(reference, hash(of: reference), level: 0, in: &branch, change)
  }

  /// Takes the object of this name away; gives it, nil where there was none.
  @discardableResult
  mutating func remove(_ reference: Reference) -> ObjectRecord? {
    let hash = hash(of: reference)
    guard self[reference, hash] != nil, var branch = root.take() else { return nil }
    let old = RecordBranch.remove(reference, hash, mask: hashMask, level: 0, from: &branch)
    count -= 1
    if count > 0 { root = branch }
    return old
  }
}

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

    fileprivate init(_ root: RecordBranch?) {
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

// MARK: - Building

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

/// The way to a record through a `RecordTree`: the hash of its reference, 6 bits of it for each level, from the top.
///
/// It is Swift's `Hasher`, seeded anew in each process: nobody can choose ids that fall together, and the order of a
/// tree differs from run to run.
struct RecordHash {
  /// All of it; a tree has its records in the order of these numbers.
  fileprivate let bits: UInt64

  /// The hash of a reference, with those bits alone that `mask` has.
  init(of reference: Reference, mask: UInt64) {
    bits = UInt64(truncatingIfNeeded: reference.hashValue) & mask
  }

  /// The last level that has bits of its own.
  static let lastLevel = 9

  /// Which of the 64 slots of a branch at this level it belongs to.
  func slot(level: Int) -> Int { Self.slot(of: tag(level: level)) }

  /// What tells records of a bucket below a branch of this level apart: the bits of the slot, and the ten behind them.
  func tag(level: Int) -> UInt16 { UInt16(truncatingIfNeeded: (bits &<< UInt64(6 * level)) &>> 48) }

  /// The slot that a tag begins with.
  static func slot(of tag: UInt16) -> Int { Int(tag >> 10) }
}

/// An element that has its place by a hash.
protocol HashOrdered {
  /// The hash: what comes first is less.
  var order: UInt64 { get }
}

extension Array where Element: HashOrdered {
  /// The elements of some lists in the order of their hashes; those of equal hashes in no order. O(n), as hashes are
  /// spread evenly.
  ///
  /// They are shared out by the first bits of the hashes, so that what is then sorted fits into the nearest cache.
  static func joined(inHashOrder lists: [[Element]]) -> [Element] {
    let count = lists.reduce(0) { $0 + $1.count }
    let shift = UInt64(64 - shareBits(of: count))
    var ends = [Int](repeating: 0, count: 1 << (64 - shift))
    for list in lists {
      for element in list { ends[Int(element.order &>> shift)] += 1 }
    }
    var start = 0
    for share in ends.indices {
      start += ends[share]
      ends[share] = start - ends[share]
    }
    return Array(unsafeUninitializedCapacity: count) { buffer, initialized in
      for list in lists {
        for element in list {
          let share = Int(element.order &>> shift)
          buffer.initializeElement(at: ends[share], to: element)
          ends[share] += 1
        }
      }
      initialized = count
      var start = 0
      for end in ends {
        var share = UnsafeMutableBufferPointer(rebasing: buffer[start..<end])
        share.sort { $0.order < $1.order }
        start = end
      }
    }
  }

  /// By how many bits so many elements are shared out: to about 64 a share, and to no more shares than a cache has
  /// lines for.
  private static func shareBits(of count: Int) -> Int {
    Swift.min(12, Swift.max(1, (count / 64).leadingZeroBitCount.distance(to: Int.bitWidth)))
  }
}
