import KeyValueModel

/// Which keys of which entities can touch a query, from the schema alone.
struct QueryReach: Sendable {
  /// What is read of the objects that may be rows, for each of the entities that they may be of.
  struct Own: Sendable {
    let tree: KeyTree
    /// The stored keys of the object itself.
    var keys: Set<Int> = []
    /// Whether anything else is read: objects behind relationships, or what collections fold into.
    var isFar = false
  }

  /// By the index of the entity.
  private(set) var own: [Int: Own] = [:]
  /// The keys of objects that rows are read through.
  private(set) var far = FarKeys()

  init(of query: Query, in schema: Schema) {
    for entity in schema.family(of: query.entity) {
      var tree = query.reads(of: entity)
      if query.viewer != nil { tree.merge(entity.rules.reads) }
      var reads = Own(tree: tree)
      collectOwn(tree, of: entity, schema, into: &reads)
      own[entity.index] = reads
    }
  }

  /// Whether anything but the rows' own keys is read.
  var isFar: Bool { !far.isEmpty || own.values.contains(where: \.isFar) }

  private mutating func collectOwn(_ tree: KeyTree, of entity: Entity, _ schema: Schema, into own: inout Own) {
    for branch in tree.branches {
      let key = entity.keys[branch.key]
      if case .computed(let computed) = key.kind {
        for inner in [computed.reads] + computed.inheritedReads {
          collectOwn(inner, of: entity, schema, into: &own)
        }
      } else {
        own.keys.insert(branch.key)
        if key.isToMany, branch.fold != nil { own.isFar = true }
      }
      guard !branch.behind.isEmpty else { continue }
      own.isFar = true
      far.insert(behind: branch, key: key, schema)
    }
  }
}
