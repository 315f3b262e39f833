import KeyValueModel

/// Every collection that an observation reads through, each watched once.
///
/// After an operation: `update` what came and went, `rewire` what leads elsewhere, then `settle` the folds; only then
/// do their values hold. What has no dependents goes at the next `sweep`.
struct CollectionWatches {
  /// A member of a watched collection.
  struct Link: Hashable {
    let watch: ObservedKey
    let member: Value
  }

  private(set) var shapes = CollectionShapes()
  private(set) var watches: [ObservedKey: CollectionWatch] = [:]
  /// The members that depend on a key.
  private var linksByKey = KeyedSets<Link>()
  /// The watches of a collection.
  private var watchesByList: [ObservedKey: [ObservedKey]] = [:]
  /// The members whose values may have changed.
  private var dirty: [ObservedKey: SmallSet<Value>] = [:]
  /// Watches that have lost the last member that depended on them.
  private var orphans: Set<ObservedKey> = []

  /// How many (key, member) pairs there are.
  var linkCount: Int { linksByKey.pairCount }

  /// Whether nothing is watched: then nothing here costs anything.
  var isEmpty: Bool { watches.isEmpty }

  /// The members that depend on a key of an object, or on another watch.
  func links(dependingOn key: ObservedKey) -> SmallSet<Link> { linksByKey[key] }

  /// What a member depends on.
  func dependencies(of link: Link) -> [Dependency] {
    watches[link.watch]?.links[link.member]?.dependencies ?? []
  }

  /// Whether a member depends on a key of its own and on nothing else, with nothing in between.
  func reads(_ link: Link, nothingBut key: ObservedKey) -> Bool {
    guard case .reference(let member) = link.member, member == key.object else { return false }
    return watches[link.watch]?.links[link.member]?.onlyAttribute == Int32(key.key)
  }

  /// What a collection folds into, where that is kept.
  func folded(_ fold: CollectionFold, of owner: Reference) -> FoldedValue? { folds.folded(fold, of: owner) }

  /// What the collections fold into.
  var folds: KeptFolds { KeptFolds(watches: watches, watchesByList: watchesByList) }

  // MARK: Following

  /// Everything that `tree` reads from an object, with `isGuarded` also what says whether the object may be read; the
  /// collections among it are watched from now on.
  mutating func dependencies(
    of tree: KeyTree, from object: Reference, _ entity: Entity, isGuarded: Bool = false, in reader: some ObjectReader
  ) -> [Dependency] {
    var walk = DependencyWalk(reader: reader, shapes: shapes)
    shapes = CollectionShapes()
    walk.follow(tree, from: object, entity)
    if isGuarded { walk.follow(entity.rules.reads, from: object, entity, ofRule: true) }
    shapes = walk.shapes
    for dependency in walk.found where dependency.observedKey.isCollection {
      watch(dependency.observedKey, in: reader)
    }
    return walk.found
  }

  private mutating func watch(_ key: ObservedKey, in reader: some ObjectReader) {
    guard watches[key] == nil, let branch = shapes[key.key] else { return }
    let list = ObservedKey(object: key.object, key: branch.key)
    shapes.retain(key.key)
    watches[key] = CollectionWatch(list: list, branch: branch)
    watchesByList[list, default: []].append(key)
    for member in reader.members(of: list) { link(member, to: key, in: reader) }
  }

  private mutating func link(_ member: Value, to watch: ObservedKey, in reader: some ObjectReader) {
    guard let branch = watches[watch]?.branch else { return }
    var dependencies: [Dependency] = []
    if !branch.behind.isEmpty, case .reference(let object) = member, let entity = reader.record(object)?.entity {
      dependencies = self.dependencies(
        of: branch.behind, from: object, entity, isGuarded: branch.isGuarded, in: reader)
    }
    let link = Link(watch: watch, member: member)
    let former = watches[watch]?.link(member, dependencies) ?? []
    for dependency in former { forget(link, dependency.observedKey) }
    for dependency in dependencies { linksByKey.insert(link, for: dependency.observedKey) }
    dirty[watch, default: SmallSet()].insert(member)
  }

  private mutating func unlink(_ member: Value, from watch: ObservedKey) {
    let link = Link(watch: watch, member: member)
    for dependency in watches[watch]?.unlink(member) ?? [] { forget(link, dependency.observedKey) }
  }

  private mutating func forget(_ link: Link, _ key: ObservedKey) {
    if linksByKey.remove(link, from: key), key.isCollection { orphans.insert(key) }
  }

  // MARK: One operation

  /// Does what `touch` and `settle` do after a setting of one attribute, of an object that is `record` by now, where it
  /// is one member of one collection at the most that reads it, and nothing depends on that collection in turn: then
  /// only its fold is to be looked at. False where that is not so, and then nothing is done.
  mutating func refold(_ key: ObservedKey, by record: ObjectRecord, in state: ModelState) -> Bool {
    guard dirty.isEmpty else { return false }
    let links = linksByKey[key]
    guard let link = links.only else { return links.isEmpty }
    guard case .reference(let member) = link.member, member == key.object, !linksByKey.contains(link.watch) else {
      return false
    }
    return watches[link.watch]?.refold(link.member, attribute: key.key, by: record, in: state) ?? false
  }

  /// Marks the members that depend on a key, and those that depend on what their collections fold into.
  mutating func touch(_ key: ObservedKey) {
    for link in links(dependingOn: key) {
      guard dirty[link.watch, default: SmallSet()].insert(link.member) else { continue }
      touch(link.watch)
    }
  }

  /// The watches of a collection: what depends on them depends on the collection.
  func watches(of list: ObservedKey) -> [ObservedKey] { watchesByList[list] ?? [] }

  /// Takes in what an operation did to the members of a collection.
  mutating func update(
    _ list: ObservedKey, _ change: Commit.CollectionChange?, in reader: some ObjectReader
  ) {
    for watch in watchesByList[list] ?? [] {
      if let change {
        for member in change.removed { unlink(member, from: watch) }
        for member in change.inserted { link(member, to: watch, in: reader) }
      } else {
        let members = Set(reader.members(of: list))
        for member in Array((watches[watch]?.links ?? [:]).keys) where !members.contains(member) {
          unlink(member, from: watch)
        }
        for member in members where watches[watch]?.links[member] == nil { link(member, to: watch, in: reader) }
      }
      // What depends on this fold in turn.
      touch(watch)
    }
  }

  /// Follows anew the members whose paths an operation has led elsewhere.
  mutating func rewire(_ links: some Sequence<Link>, in reader: some ObjectReader) {
    for entry in links where watches[entry.watch]?.links[entry.member] != nil {
      link(entry.member, to: entry.watch, in: reader)
    }
  }

  /// Works out again what the marked members add, inner collections first.
  mutating func settle(in reader: some ObjectReader) {
    while let watch = dirty.keys.first { settle(watch, in: reader) }
  }

  /// A watch without a fold has nothing to work out, but its members may read folds that have.
  private mutating func settle(_ watch: ObservedKey, in reader: some ObjectReader) {
    guard let members = dirty.removeValue(forKey: watch) else { return }
    let fold = watches[watch]?.branch.fold
    for member in members {
      guard let link = watches[watch]?.links[member] else { continue }
      for dependency in link.dependencies where dirty[dependency.observedKey] != nil {
        settle(dependency.observedKey, in: reader)
      }
      guard let fold else { continue }
      let contribution: RunningFold.Contribution
      if link.dependencies.contains(where: \.observedKey.isCollection) {
        contribution = self.contribution(of: member, to: fold, in: reader)
      } else {
        // It reads no fold, so that the reader need not know any.
        contribution = reader.contribution(of: member, to: fold)
      }
      watches[watch]?.contribute(contribution, from: member)
    }
  }

  /// A function of its own, so that no copy of the watches is alive when they are changed.
  private func contribution(
    of member: Value, to fold: CollectionFold, in reader: some ObjectReader
  ) -> RunningFold.Contribution {
    FoldingReader(base: reader, watches: self).contribution(of: member, to: fold)
  }

  // MARK: The end

  /// Takes one of the watches that no member depends on any more, or did not for a while; nil where there is none.
  mutating func popOrphan() -> ObservedKey? { orphans.popFirst() }

  /// Ends the watch if no member of another depends on it. The watches that its own members depended on may be next.
  mutating func end(_ watch: ObservedKey) {
    guard !linksByKey.contains(watch), let ended = watches.removeValue(forKey: watch) else { return }
    for (member, link) in ended.links {
      for dependency in link.dependencies { forget(Link(watch: watch, member: member), dependency.observedKey) }
    }
    dirty[watch] = nil
    watchesByList[ended.list]?.removeAll { $0 == watch }
    if watchesByList[ended.list]?.isEmpty == true { watchesByList[ended.list] = nil }
    shapes.release(watch.key)
  }
}

extension ObjectReader {
  /// The members of a collection; none where the object is not there.
  func members(of list: ObservedKey) -> MemberList {
    guard let record = record(list.object),
      case .members(let members) = value(of: record, list.object, key: list.key)
    else { return MemberList(isOrdered: false) }
    return members
  }
}
