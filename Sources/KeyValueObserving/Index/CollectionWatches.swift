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
  /// The watches that are not complete, with the members that are still to be followed, from a place on: the last is
  /// gone on with first, which the one before it may depend on.
  private var unfinished: [(watch: ObservedKey, members: MemberList, next: Int)] = []
  /// True while new watches are left unfinished.
  private var leavesUnfinished = false
  /// Watches that have lost the last member that depended on them.
  private var orphans: Set<ObservedKey> = []

  /// The most members that are followed in all. Beyond that, nothing that was registered is to be used.
  var linkLimit = Int.max
  /// The members that were followed so far, those included that have gone.
  private(set) var followed = 0
  /// True if there would be more members to follow than `linkLimit`.
  var isOverLimit: Bool { followed > linkLimit }

  /// How many (key, member) pairs there are.
  var linkCount: Int { linksByKey.pairCount }

  /// Whether nothing is watched: then nothing here costs anything.
  var isEmpty: Bool { watches.isEmpty }

  /// The members that depend on a key of an object, or on another watch.
  func links(dependingOn key: ObservedKey) -> SmallSet<Link> { linksByKey[key] }

  /// For each watch whose members read one of the keys, the first of these.
  func firstReaders(of keys: [ObservedKey]) -> [ObservedKey: ObservedKey] {
    var found: [ObservedKey: ObservedKey] = [:]
    for key in keys {
      var reading = [key]
      while let next = reading.popLast() {
        for link in links(dependingOn: next) where found[link.watch] == nil {
          found[link.watch] = key
          reading.append(link.watch)
        }
      }
    }
    return found
  }

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
    if watches[key]?.isComplete == false, !leavesUnfinished { return finishAll(in: reader) }
    guard watches[key] == nil, let branch = shapes[key.key] else { return }
    let list = ObservedKey(object: key.object, key: branch.key)
    shapes.retain(key.key)
    watches[key] = CollectionWatch(list: list, branch: branch)
    watchesByList[list, default: []].append(key)
    let members = reader.members(of: list)
    guard !leavesUnfinished || members.isEmpty else {
      watches[key]?.isComplete = false
      return unfinished.append((key, members, 0))
    }
    for member in members where !isOverLimit { link(member, to: key, in: reader) }
  }

  // MARK: Following many members, portion by portion

  /// The watches of the collections that `tree` reads from an object, begun if need be, and not finished.
  mutating func begin(
    _ tree: KeyTree, from object: Reference, _ entity: Entity, isGuarded: Bool, in reader: some ObjectReader
  ) -> [ObservedKey] {
    leavesUnfinished = true
    defer { leavesUnfinished = false }
    return dependencies(of: tree, from: object, entity, isGuarded: isGuarded, in: reader)
      .map(\.observedKey).filter(\.isCollection)
  }

  /// Follows up to `count` more members of unfinished watches. True once all are complete.
  mutating func finish(_ count: Int, in reader: some ObjectReader) -> Bool {
    leavesUnfinished = true
    defer { leavesUnfinished = false }
    var left = count
    while left > 0, let place = unfinished.indices.last {
      let (key, members, next) = unfinished[place]
      guard next < members.count, let list = watches[key]?.list else {
        unfinished.remove(at: place)
        watches[key]?.isComplete = true
        // What was read of it meanwhile may not have been the last.
        touch(key)
        continue
      }
      unfinished[place].next += 1
      left -= 1
      let member = members[next]
      // It may have gone, or come, since the watch was begun.
      if watches[key]?.links[member] == nil, reader.members(of: list).contains(member) {
        link(member, to: key, in: reader)
      }
    }
    settle(in: reader)
    return unfinished.isEmpty
  }

  private mutating func finishAll(in reader: some ObjectReader) {
    while !finish(.max, in: reader) {}
  }

  /// Ends watches that nothing depends on, at the next sweep.
  mutating func release(_ keys: some Sequence<ObservedKey>) { orphans.formUnion(keys) }

  private mutating func link(_ member: Value, to watch: ObservedKey, in reader: some ObjectReader) {
    guard let branch = watches[watch]?.branch else { return }
    followed += 1
    guard !isOverLimit else { return }
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

  /// Takes in what an operation did, and works out the folds again.
  mutating func update(
    _ changes: [Commit.KeyChange], rewiring links: some Sequence<Link>, in reader: some ObjectReader
  ) {
    for change in changes {
      update(ObservedKey(object: change.object, key: change.key), change.collection, in: reader)
    }
    rewire(links, in: reader)
    settle(in: reader)
  }

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
        if watches[watch]?.isComplete == false, let place = unfinished.firstIndex(where: { $0.watch == watch }) {
          (unfinished[place].members, unfinished[place].next) = (reader.members(of: list), 0)
          continue
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
    if !ended.isComplete { unfinished.removeAll { $0.watch == watch } }
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

/// The members of one collection of one object, followed for what is read of each of them, and folded where they are
/// folded. However many observations read it, there is one.
struct CollectionWatch {
  /// One member.
  struct Link {
    /// What is read of it, as the paths lead now.
    var dependencies: [Dependency] { didSet { onlyAttribute = Self.onlyAttribute(of: dependencies) } }
    /// The key of the member that is all that is read of it, where no computed key and no rule stands in between; nil
    /// where that is anything else. Known without a look at the dependencies.
    private(set) var onlyAttribute: Int32?
    /// What it has added to the fold; nil while it has not yet.
    var contribution: RunningFold.Contribution?

    init(dependencies: [Dependency]) {
      self.dependencies = dependencies
      onlyAttribute = Self.onlyAttribute(of: dependencies)
    }

    private static func onlyAttribute(of dependencies: [Dependency]) -> Int32? {
      guard dependencies.count == 1, let only = dependencies.first, only.gates.isEmpty, !only.isOfRule,
        !only.observedKey.isCollection
      else { return nil }
      return Int32(only.observedKey.key)
    }
  }

  /// The collection's key.
  let list: ObservedKey
  /// What is read of the members.
  let branch: KeyTree.Branch
  private(set) var links: [Value: Link] = [:]
  /// True once all members are followed; what they fold into is known only then.
  fileprivate var isComplete = true
  fileprivate private(set) var running: RunningFold?

  /// A watch that has no members yet.
  fileprivate init(list: ObservedKey, branch: KeyTree.Branch) {
    self.list = list
    self.branch = branch
    running = branch.fold.map(RunningFold.init)
  }

  /// Takes a member in, or follows it anew; gives what was followed before.
  fileprivate mutating func link(_ member: Value, _ dependencies: [Dependency]) -> [Dependency] {
    guard let former = links[member] else {
      links[member] = Link(dependencies: dependencies)
      return []
    }
    links[member]?.dependencies = dependencies
    return former.dependencies
  }

  /// Lets a member go; gives what was followed.
  fileprivate mutating func unlink(_ member: Value) -> [Dependency] {
    guard let link = links.removeValue(forKey: member) else { return [] }
    if let contribution = link.contribution { running?.remove(contribution) }
    return link.dependencies
  }

  /// Puts what a member adds now, which is `record`, in the place of what it added before, where an attribute of it is
  /// all that is read of it; false where more is, and then nothing is done.
  fileprivate mutating func refold(_ member: Value, attribute: Int, by record: ObjectRecord, in state: ModelState)
    -> Bool
  {
    guard let place = links.index(forKey: member), links.values[place].onlyAttribute == Int32(attribute) else {
      return false
    }
    guard let fold = branch.fold else { return true }
    // Mostly the record, which is at hand, says it all.
    let isFoldedItself = fold.attribute == attribute
    contribute(
      isFoldedItself ? .value(record.attribute(at: attribute)) : state.contribution(of: member, to: fold), at: place)
    return true
  }

  /// Puts what a member adds now in the place of what it added before.
  fileprivate mutating func contribute(_ contribution: RunningFold.Contribution, from member: Value) {
    guard let place = links.index(forKey: member) else { return }
    contribute(contribution, at: place)
  }

  private mutating func contribute(_ contribution: RunningFold.Contribution, at place: Dictionary<Value, Link>.Index) {
    let former = links.values[place].contribution
    guard former != contribution else { return }
    if let former { running?.remove(former) }
    running?.insert(contribution)
    links.values[place].contribution = contribution
  }
}

/// A state together with what its watched collections fold into, so that reading a sum does not read the members.
struct FoldingReader<Base: ObjectReader>: ObjectReader {
  private let base: Base
  private let folds: KeptFolds

  init(base: Base, watches: borrowing CollectionWatches) {
    self.base = base
    folds = watches.folds
  }

  func record(_ reference: Reference) -> ObjectRecord? { base.record(reference) }

  func folded(_ fold: CollectionFold, of owner: Reference) -> FoldedValue? { folds.folded(fold, of: owner) }

  var work: ReadingWork? { base.work }
}

/// What the watched collections fold into: no more of the watches than reading takes, since it is copied for that.
struct KeptFolds {
  fileprivate let watches: [ObservedKey: CollectionWatch]
  /// The watches of a collection.
  fileprivate let watchesByList: [ObservedKey: [ObservedKey]]

  /// What a collection folds into, where that is kept.
  func folded(_ fold: CollectionFold, of owner: Reference) -> FoldedValue? {
    for watch in watchesByList[ObservedKey(object: owner, key: fold.key)] ?? [] {
      if let found = watches[watch], found.branch.fold == fold, found.isComplete { return found.running?.value }
    }
    return nil
  }
}
