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
    /// Whether what the read rules read of the objects behind the key is read as well.
    package var isGuarded = false

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

  /// What is read for someone who may not read every object: of those behind the keys also what says whether they may.
  /// What members fold into is then different for each, so that no fold is kept.
  package var guarded: KeyTree {
    var tree = self
    tree.branches = branches.map { branch in
      var guarded = Branch(
        key: branch.key, behind: branch.behind.guarded, fold: branch.behind.isEmpty ? branch.fold : nil)
      guarded.isGuarded = !branch.behind.isEmpty
      return guarded
    }
    return tree
  }

  /// Reads what `other` reads as well.
  package mutating func merge(_ other: KeyTree) {
    for branch in other.branches {
      if let index = branches.firstIndex(where: {
        $0.key == branch.key && $0.fold == branch.fold && $0.isGuarded == branch.isGuarded
      }) {
        branches[index].behind.merge(branch.behind)
      } else {
        branches.append(branch)
      }
    }
  }
}
