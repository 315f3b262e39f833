import KeyValueModel

/// The objects behind relationships and the folds of collections that the rows of one query are read through.
struct QueryPaths: Sendable {
  private var membersByKey: [ObservedKey: Set<Reference>] = [:]
  private var keysByMember: [Reference: [ObservedKey]] = [:]
  private var collections = CollectionWatches()
  /// Watches that have lost a row that depended on them.
  private var orphans: Set<ObservedKey> = []

  /// The number of (key, row) pairs.
  var linkCount: Int { membersByKey.values.reduce(0) { $0 + $1.count } + collections.linkCount }

  /// Returns a reader with the folds of the collections. It is a copy, and must be released before anything here is
  /// changed.
  func reader<Base: ObjectReader>(over base: Base) -> FoldingReader<Base> {
    FoldingReader(base: base, watches: collections)
  }

  /// Follows again what an object is read through. Its own stored keys are left out, because a change of them names the
  /// object.
  mutating func follow(_ member: Reference, _ entity: Entity, _ own: QueryReach.Own, in reader: some ObjectReader) {
    let former = keysByMember.removeValue(forKey: member) ?? []
    var keys: [ObservedKey] = []
    for dependency in collections.dependencies(of: own.tree, from: member, entity, in: reader) {
      let key = dependency.observedKey
      if key.object == member, !key.isCollection, own.keys.contains(key.key) || entity.keys[key.key].storage == nil {
        continue
      }
      keys.append(key)
      membersByKey[key, default: []].insert(member)
    }
    if !keys.isEmpty { keysByMember[member] = keys }
    unlink(member, from: former, but: keys)
  }

  /// Stops following an object.
  mutating func forget(_ member: Reference) {
    unlink(member, from: keysByMember.removeValue(forKey: member) ?? [], but: [])
  }

  private mutating func unlink(_ member: Reference, from keys: [ObservedKey], but kept: [ObservedKey]) {
    for key in keys where !kept.contains(key) {
      if membersByKey.remove(member, from: key), key.isCollection { orphans.insert(key) }
    }
  }

  /// Applies the changes of a commit to the collections, given the state after it. Returns the objects that are read
  /// through anything that it set. Their paths may lead elsewhere, and the folds are valid again once they are settled.
  mutating func update(_ changes: [Commit.KeyChange], in reader: some ObjectReader) -> Set<Reference> {
    var members: Set<Reference> = []
    var links: Set<CollectionWatches.Link> = []
    var seen: Set<ObservedKey> = []
    for change in changes {
      let key = ObservedKey(object: change.object, key: change.key)
      collect(key, &members, &links, &seen)
      collections.touch(key)
    }
    for change in changes {
      collections.update(
        ObservedKey(object: change.object, key: change.key), change.collection, in: reader)
    }
    collections.rewire(links, in: reader)
    return members
  }

  /// Collects what depends on a key, directly or through collections.
  private func collect(
    _ key: ObservedKey, _ members: inout Set<Reference>, _ links: inout Set<CollectionWatches.Link>,
    _ seen: inout Set<ObservedKey>
  ) {
    guard seen.insert(key).inserted else { return }
    if let dependents = membersByKey[key] { members.formUnion(dependents) }
    for link in collections.links(dependingOn: key) {
      links.insert(link)
      collect(link.watch, &members, &links, &seen)
    }
    for watch in collections.watches(of: key) { collect(watch, &members, &links, &seen) }
  }

  /// Recomputes the folds of the collections.
  mutating func settle(in reader: some ObjectReader) { collections.settle(in: reader) }

  /// Ends the watches of collections without dependents.
  mutating func sweep() {
    while let watch = orphans.popFirst() ?? collections.popOrphan() {
      if membersByKey[watch] == nil { collections.end(watch) }
    }
  }
}

/// The keys of entities that can touch a query, determined from the schema alone.
struct QueryReach: Sendable {
  /// The keys that are read of possible rows of one entity.
  struct Own: Sendable {
    let tree: KeyTree
    /// The stored keys of the object itself.
    var keys: Set<Int> = []
    /// True if anything else is read: objects behind relationships, or folds of collections.
    var isFar = false
  }

  /// The keys of possible rows, by the index of the entity.
  private(set) var own: [Int: Own] = [:]
  /// The keys of objects that rows are read through.
  private(set) var far = RemoteReadKeys()

  init(of query: Query, in schema: Schema) {
    for entity in schema.family(of: query.entity) {
      var tree = query.reads(of: entity)
      if query.viewer != nil { tree.merge(entity.rules.reads) }
      var reads = Own(tree: tree)
      collectOwn(tree, of: entity, schema, into: &reads)
      own[entity.index] = reads
    }
  }

  /// True if anything but the rows' own keys is read.
  var isFar: Bool { !far.isEmpty || own.values.contains(where: \.isFar) }

  private mutating func collectOwn(_ tree: KeyTree, of entity: Entity, _ schema: Schema, into own: inout Own) {
    for branch in tree.branches {
      let key = entity.keys[branch.key]
      if case .computed(let computed) = key.kind {
        for inner in computed.notifyingReads { collectOwn(inner, of: entity, schema, into: &own) }
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
