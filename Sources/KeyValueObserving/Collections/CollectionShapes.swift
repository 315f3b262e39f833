import KeyValueModel

/// Numbers for what is read of collections: for each collection key, what is read of its members and what they fold
/// into. With the owner, such a number names a `CollectionWatch` as if it were one more key of the owner, which is how
/// dependencies name it.
struct CollectionShapes {
  private var keys: [KeyTree.Branch: Int] = [:]
  private var branches: [Int: KeyTree.Branch] = [:]
  private var watches: [Int: Int] = [:]
  private var nextKey = -1

  /// The number for what a branch reads, always negative.
  mutating func key(for branch: KeyTree.Branch) -> Int {
    if let key = keys[branch] { return key }
    let key = nextKey
    nextKey -= 1
    keys[branch] = key
    branches[key] = branch
    return key
  }

  /// What a number stands for.
  subscript(key: Int) -> KeyTree.Branch? { branches[key] }

  /// Counts a watch of this shape.
  mutating func retain(_ key: Int) { watches[key, default: 0] += 1 }

  /// Counts a watch less; with the last, the number is forgotten.
  mutating func release(_ key: Int) {
    guard let count = watches[key] else { return }
    guard count == 1 else {
      watches[key] = count - 1
      return
    }
    watches[key] = nil
    if let branch = branches.removeValue(forKey: key) { keys[branch] = nil }
  }
}
