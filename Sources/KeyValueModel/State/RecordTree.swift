/// The objects of an entity by their references: a hash trie of buckets of records.
///
/// Persistent: a copy costs O(1) and shares everything with the original. A lookup takes O(log₆₄ n) steps and counts no
/// reference but the record's. A change copies at most as many nodes, and none that has a single owner. The records
/// contain their references, so that an object takes a word, a tag and its share of the nodes: about 15 bytes.
///
/// `@unchecked Sendable`: nodes with more than one owner are never mutated, and neither are records.
struct RecordTree: @unchecked Sendable {
  /// The top branch; nil if the tree is empty.
  private(set) var root: RecordBranch?
  /// The number of objects.
  private(set) var count = 0
  /// The bits of hashes that are used.
  let hashMask: UInt64

  /// Creates an empty tree, which allocates nothing. Only the bits of `hashMask` are used of hashes: with few of them
  /// many hashes are equal, which must cost only time.
  init(hashMask: UInt64 = .max) {
    self.init(root: nil, count: 0, hashMask: hashMask)
  }

  /// Creates a tree of `count` objects below a root.
  private init(root: RecordBranch?, count: Int, hashMask: UInt64) {
    self.root = root
    self.count = count
    self.hashMask = hashMask
  }

  /// Returns the hash of a reference, which leads to its object if that exists.
  func hash(of reference: Reference) -> RecordHash { RecordHash(of: reference, mask: hashMask) }

  /// The object with this reference, or nil if it does not exist.
  subscript(reference: Reference) -> ObjectRecord? { self[reference, hash(of: reference)] }

  /// The object with this reference, whose hash the caller knows.
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

  /// Replaces the object with the same reference, or adds the object. Returns the previous one, or nil if there was
  /// none.
  @discardableResult
  mutating func update(_ record: ObjectRecord) -> ObjectRecord? { update(record, hash(of: record.reference)) }

  /// Replaces or adds an object, of whose reference the caller knows the hash.
  @discardableResult
  mutating func update(_ record: ObjectRecord, _ hash: RecordHash) -> ObjectRecord? {
    // Moved out meanwhile: with a second owner each branch would be copied.
    var branch = root.take() ?? .make(over: .owning(RecordBucket.make(capacity: 4)))
    let old = RecordBranch.update(record, hash, mask: hashMask, level: 0, in: &branch)
    root = branch
    if old == nil { count += 1 }
    return old
  }

  /// Changes the object with this reference, in place where it has no other owner. Returns false if it does not exist.
  mutating func change(_ reference: Reference, _ change: (inout ObjectRecord) -> Void) -> Bool {
    guard var branch = root.take() else { return false }
    defer { root = branch }
    return RecordBranch.change(reference, hash(of: reference), level: 0, in: &branch, change)
  }

  /// Removes the object with this reference. Returns it, or nil if it does not exist.
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
  /// Returns an iterator over the objects with their references, in no particular order.
  func makeIterator() -> Iterator { Iterator(root) }

  /// The number of objects.
  var underestimatedCount: Int { count }

  /// The references of all objects, in no particular order. O(n).
  var references: [Reference] {
    var references: [Reference] = []
    references.reserveCapacity(count)
    for (reference, _) in self { references.append(reference) }
    return references
  }

  /// An iterator over the objects of a tree.
  struct Iterator: IteratorProtocol {
    /// The branches on the path to the bucket, each with the index of its next child.
    private var path: [(branch: RecordBranch, next: Int)] = []
    private var bucket: RecordBucket?
    private var position = 0

    fileprivate init(_ root: RecordBranch?) {
      if let root { path.append((root, 0)) }
    }

    /// Returns the next object.
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
  /// A record with its hash, which is computed while the record is in a cache.
  struct Entry: HashOrdered {
    let hash: RecordHash
    let record: ObjectRecord

    /// Creates the entry of a record; without `mask` all bits of hashes are used.
    init(_ record: ObjectRecord, mask: UInt64 = .max) {
      hash = RecordHash(of: record.reference, mask: mask)
      self.record = record
    }

    var order: UInt64 { hash.bits }
  }

  /// Creates a tree of records, given with their hashes and in the order of these.
  ///
  /// O(n): each node is made once, and a record, which would seldom be in a cache, is read only if another has the same
  /// hash. Throws the reference of a record that occurs twice.
  init(sorted entries: [Entry], hashMask: UInt64 = .max) throws(Repetition) {
    try Self.check(entries)
    let root = entries.withUnsafeBufferPointer { entries in
      entries.isEmpty ? nil : RecordBranch.make(of: entries[...], level: 0)
    }
    self.init(root: root, count: entries.count, hashMask: hashMask)
  }

  /// The error that two records have the same reference.
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

/// The path to a record through a `RecordTree`: the hash of its reference, with 6 bits for each level from the top.
///
/// It comes from Swift's `Hasher`, which is seeded anew in each process: clients cannot choose ids with colliding
/// hashes, and the order of a tree differs from run to run.
struct RecordHash {
  /// All bits; a tree has its records in the order of these numbers.
  fileprivate let bits: UInt64

  /// Creates the hash of a reference, with only the bits that `mask` has.
  init(of reference: Reference, mask: UInt64) {
    bits = UInt64(truncatingIfNeeded: reference.hashValue) & mask
  }

  /// The last level that has bits of its own.
  static let lastLevel = 9

  /// Returns the slot, of the 64 of a branch at this level.
  func slot(level: Int) -> Int { Self.slot(of: tag(level: level)) }

  /// Returns the tag in a bucket below a branch of this level: the bits of the slot, and the ten bits after them.
  func tag(level: Int) -> UInt16 { UInt16(truncatingIfNeeded: (bits &<< UInt64(6 * level)) &>> 48) }

  /// Returns the slot that a tag begins with.
  static func slot(of tag: UInt16) -> Int { Int(tag >> 10) }
}

/// An element that is ordered by a hash.
protocol HashOrdered {
  /// The hash; elements with lower ones come first.
  var order: UInt64 { get }
}

extension Array where Element: HashOrdered {
  /// Returns the elements of some lists in the order of their hashes, in no particular order among equal ones. O(n),
  /// since hashes are distributed evenly.
  ///
  /// The elements are first distributed by the leading bits of their hashes, so that each part that is then sorted fits
  /// into the nearest cache.
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

  /// Returns the number of bits by which this many elements are distributed: into parts of about 64, and into no more
  /// parts than a cache has lines.
  private static func shareBits(of count: Int) -> Int {
    Swift.min(12, Swift.max(1, (count / 64).leadingZeroBitCount.distance(to: Int.bitWidth)))
  }
}
