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
  init(root: RecordBranch?, count: Int, hashMask: UInt64) {
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
