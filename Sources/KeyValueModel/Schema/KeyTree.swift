import CEL

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
      tree.branches = [Branch(key: key, behind: tree, fold: isLast ? fold : nil)]
      isLast = false
    }
    self = tree
  }

  /// Whether nothing is read.
  package var isEmpty: Bool { branches.isEmpty }

  /// What is read for someone who may not read every object: of those behind the keys also what says whether they may.
  /// What members fold into is then different for each, so that no fold is kept.
  package var guarded: KeyTree {
    var tree = self
    tree.branches = branches.map { branch in
      Branch(
        key: branch.key, behind: branch.behind.guarded, fold: branch.behind.isEmpty ? branch.fold : nil,
        isGuarded: !branch.behind.isEmpty)
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

extension KeyTree {
  /// What an expression reads, its names looked up in the schema. What it reads inside JSON values ends at their key.
  init(_ reads: KeyReads, of entity: Entity, in schema: Schema) {
    self.init()
    // In the order of the keys, so that the same expression always has the same tree.
    for (name, below) in reads.children.sorted(by: { $0.key < $1.key }) {
      guard let key = entity.indexOfKey(name) else { continue }
      let destination = schema.destination(of: entity.keys[key])
      let inner = entity.keys[key].isToMany ? below.elements : below
      let behind = destination.flatMap { target in inner.map { KeyTree($0, of: target, in: schema) } } ?? KeyTree()
      merge(KeyTree(path: CollectionOfOne(key), behind: behind))
    }
  }
}

/// Which stored keys are read through relationships of other objects, from the schema alone.
package struct FarKeys: Sendable {
  /// The indexes of the keys, by the index of their entity; subclasses stand for themselves.
  package private(set) var ofEntity: [Int: Set<Int>] = [:]

  /// None.
  package init() {}

  /// Those that the computed keys of a schema read, in which no computed key depends on itself.
  init(of schema: Schema) {
    for entity in schema.entities {
      for case .computed(let computed) in entity.keys.map(\.kind) {
        for tree in computed.notifyingReads { insertOwn(tree, of: entity, schema) }
      }
    }
  }

  /// Whether there is none.
  package var isEmpty: Bool { ofEntity.isEmpty }

  /// What an object reads behind its own keys. That of its computed keys is theirs.
  private mutating func insertOwn(_ tree: KeyTree, of entity: Entity, _ schema: Schema) {
    for branch in tree.branches { insert(behind: branch, key: entity.keys[branch.key], schema) }
  }

  /// Adds what is read of the objects that a key leads to.
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
