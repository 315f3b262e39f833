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
        insertOwn(computed.reads, of: entity, schema)
        for tree in computed.inheritedReads { insertOwn(tree, of: entity, schema) }
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
        for inner in [computed.reads] + computed.inheritedReads { insert(inner, of: entity, schema) }
      } else {
        ofEntity[entity.index, default: []].insert(branch.key)
      }
      insert(behind: branch, key: key, schema)
    }
  }
}
