import CEL

/// The keys that a value is read from: keys of an object, and the keys read of the objects behind them.
package struct KeyTree: Hashable, Sendable {
  /// One key that is read.
  package struct Branch: Hashable, Sendable {
    /// The index of the key in its entity.
    package let key: Int
    /// The keys read of the object, or of each member, that the key leads to.
    package var behind: KeyTree
    /// The fold of the members, if the key is a to-many that only a collection function reads; nil otherwise.
    package let fold: CollectionFold?
    /// True if the keys that the read rules read of the objects behind the key are read as well.
    package var isGuarded = false
  }

  /// The keys: each key occurs once for every fold of it, and once for reads without a fold.
  package private(set) var branches: [Branch] = []

  /// Creates an empty tree.
  package init() {}

  /// Creates the tree of a path, in which each key belongs to the object behind the previous one. The members of the
  /// last key are read for `fold`.
  package init(path: some BidirectionalCollection<Int>, fold: CollectionFold? = nil, behind: KeyTree = KeyTree()) {
    var tree = behind
    var isLast = true
    for key in path.reversed() {
      tree.branches = [Branch(key: key, behind: tree, fold: isLast ? fold : nil)]
      isLast = false
    }
    self = tree
  }

  /// True if no key is read.
  package var isEmpty: Bool { branches.isEmpty }

  /// The keys read for a viewer that may not read every object: of the objects behind keys, the keys that their read
  /// rules read as well. Folds over these objects differ between viewers, so the tree has none.
  package var guarded: KeyTree {
    var tree = self
    tree.branches = branches.map { branch in
      Branch(
        key: branch.key, behind: branch.behind.guarded, fold: branch.behind.isEmpty ? branch.fold : nil,
        isGuarded: !branch.behind.isEmpty)
    }
    return tree
  }

  /// Adds the keys that `other` reads.
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

extension KeyTree {
  /// Creates the tree of the keys that an expression reads, with its names resolved in the schema. Reads inside a JSON
  /// value end at the value's key.
  init(_ reads: KeyReads, of entity: Entity, in schema: Schema) {
    self.init()
    // Sorted by name, so that the same expression always has the same tree.
    for (name, below) in reads.children.sorted(by: { $0.key < $1.key }) {
      guard let key = entity.indexOfKey(name) else { continue }
      let destination = schema.destination(of: entity.keys[key])
      let inner = entity.keys[key].isToMany ? below.elements : below
      let behind = destination.flatMap { target in inner.map { KeyTree($0, of: target, in: schema) } } ?? KeyTree()
      merge(KeyTree(path: CollectionOfOne(key), behind: behind))
    }
  }
}

/// The stored keys that other objects read through relationships, derived from the schema alone.
package struct RemoteReadKeys: Sendable {
  /// The indexes of the keys, by the index of their entity. Subclasses have entries of their own.
  package private(set) var ofEntity: [Int: Set<Int>] = [:]

  /// Creates an empty set.
  package init() {}

  /// Creates the set of keys that the computed keys of a schema read. No computed key of the schema may depend on
  /// itself.
  init(of schema: Schema) {
    for entity in schema.entities {
      for case .computed(let computed) in entity.keys.map(\.kind) {
        for tree in computed.notifyingReads { insertOwn(tree, of: entity, schema) }
      }
    }
  }

  /// True if there are no such keys.
  package var isEmpty: Bool { ofEntity.isEmpty }

  /// Adds the keys that an object of `entity` reads behind its own keys. The reads of its own computed keys are added
  /// for these keys.
  private mutating func insertOwn(_ tree: KeyTree, of entity: Entity, _ schema: Schema) {
    for branch in tree.branches { insert(behind: branch, key: entity.keys[branch.key], schema) }
  }

  /// Adds the keys that are read of the objects that a key leads to.
  package mutating func insert(behind branch: KeyTree.Branch, key: Key, _ schema: Schema) {
    guard !branch.behind.isEmpty, let destination = schema.destination(of: key) else { return }
    for entity in schema.family(of: destination) {
      insert(branch.behind, of: entity, schema)
      if branch.isGuarded { insert(entity.rules.reads, of: entity, schema) }
    }
  }

  private mutating func insert(_ tree: KeyTree, of entity: Entity, _ schema: Schema) {
    for branch in tree.branches {
      let key = entity.keys[branch.key]
      if case .computed(let computed) = key.kind {
        for inner in computed.notifyingReads { insert(inner, of: entity, schema) }
      } else {
        ofEntity[entity.index, default: []].insert(branch.key)
      }
      insert(behind: branch, key: key, schema)
    }
  }
}
