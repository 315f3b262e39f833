/// What a value is read from: keys of an object, and what is read of the objects behind them.
package struct KeyTree: Hashable, Sendable {
  /// One key that is read.
  package struct Branch: Hashable, Sendable {
    /// The index of the key in its entity.
    package let key: Int
    /// What is read of the object, or of each member, that the key leads to.
    package var behind: KeyTree
    /// What the members are folded into, where the key is a to-many that is read by a collection function alone.
    package let fold: CollectionFold?

    package init(key: Int, behind: KeyTree = KeyTree(), fold: CollectionFold? = nil) {
      self.key = key
      self.behind = behind
      self.fold = fold
    }
  }

  /// The keys, each once for every fold and once for what is read without one.
  package private(set) var branches: [Branch] = []

  /// Reads nothing.
  package init() {}

  /// Reads the keys of a path, each of the object behind the one before, and the last one's members for `fold`.
  package init(path: some BidirectionalCollection<Int>, fold: CollectionFold? = nil, behind: KeyTree = KeyTree()) {
    var tree = behind
    var isLast = true
    for key in path.reversed() {
      tree = KeyTree(Branch(key: key, behind: tree, fold: isLast ? fold : nil))
      isLast = false
    }
    self = tree
  }

  private init(_ branch: Branch) {
    branches = [branch]
  }

  /// Whether nothing is read.
  package var isEmpty: Bool { branches.isEmpty }

  /// Reads what `other` reads as well.
  package mutating func merge(_ other: KeyTree) {
    for branch in other.branches {
      if let index = branches.firstIndex(where: { $0.key == branch.key && $0.fold == branch.fold }) {
        branches[index].behind.merge(branch.behind)
      } else {
        branches.append(branch)
      }
    }
  }
}
