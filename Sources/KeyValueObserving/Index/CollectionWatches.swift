import KeyValueModel

/// The collections that observations read through, each watched once.
///
/// After an operation, call `update` with inserted and removed members, `rewire` for paths that lead elsewhere, then
/// `settle`. Only then are the folds valid. Watches without dependents are removed at the next `sweep`.
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
  /// The incomplete watches, each with its members and the index of the next member to follow. The last watch is
  /// continued first, because the one before it may depend on it.
  private var unfinished: [(watch: ObservedKey, members: MemberList, next: Int)] = []
  /// True while new watches are left unfinished.
  private var leavesUnfinished = false
  /// Watches that have lost the last member that depended on them.
  private var orphans: Set<ObservedKey> = []

  /// The maximum number of members that are followed in total. Beyond it, nothing that was registered may be used.
  var linkLimit = Int.max
  /// The number of members that were followed so far, including those that were removed since.
  private(set) var followed = 0
  /// True if there would be more members to follow than `linkLimit`.
  var isOverLimit: Bool { followed > linkLimit }

  /// The number of (key, member) pairs.
  var linkCount: Int { linksByKey.pairCount }

  /// True if no collection is watched. Then nothing here costs anything.
  var isEmpty: Bool { watches.isEmpty }

  /// Returns the members that depend on a key of an object, or on another watch.
  func links(dependingOn key: ObservedKey) -> SmallSet<Link> { linksByKey[key] }

  /// Returns, for each watch whose members read one of the keys, the first of these keys.
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

  /// Returns the dependencies of a member.
  func dependencies(of link: Link) -> [Dependency] {
    watches[link.watch]?.links[link.member]?.dependencies ?? []
  }

  /// Returns true if a member directly depends on a key of its own and on nothing else.
  func reads(_ link: Link, nothingBut key: ObservedKey) -> Bool {
    guard case .reference(let member) = link.member, member == key.object else { return false }
    return watches[link.watch]?.links[link.member]?.onlyAttribute == Int32(key.key)
  }

  /// Returns the fold of a collection; nil if it is not maintained.
  func folded(_ fold: CollectionFold, of owner: Reference) -> FoldedValue? { folds.folded(fold, of: owner) }

  /// The folds of the watched collections.
  var folds: KeptFolds { KeptFolds(watches: watches, watchesByList: watchesByList) }

  // MARK: Following

  /// Returns everything that `tree` reads from an object and, with `isGuarded`, everything that decides whether the
  /// object may be read. From now on the collections among it are watched.
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

  /// Returns the watches of the collections that `tree` reads from an object. Begins those that do not exist yet,
  /// without finishing them.
  mutating func begin(
    _ tree: KeyTree, from object: Reference, _ entity: Entity, isGuarded: Bool, in reader: some ObjectReader
  ) -> [ObservedKey] {
    leavesUnfinished = true
    defer { leavesUnfinished = false }
    return dependencies(of: tree, from: object, entity, isGuarded: isGuarded, in: reader)
      .map(\.observedKey).filter(\.isCollection)
  }

  /// Follows up to `count` more members of unfinished watches. Returns true once all watches are complete.
  mutating func finish(_ count: Int, in reader: some ObjectReader) -> Bool {
    leavesUnfinished = true
    defer { leavesUnfinished = false }
    var left = count
    while left > 0, let place = unfinished.indices.last {
      let (key, members, next) = unfinished[place]
      guard next < members.count, let list = watches[key]?.list else {
        unfinished.remove(at: place)
        watches[key]?.isComplete = true
        // Values that were read from the watch meanwhile may be out of date.
        touch(key)
        continue
      }
      unfinished[place].next += 1
      left -= 1
      let member = members[next]
      // The member may have been removed, or linked already, since the watch was begun.
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

  /// Does the work of `touch` and `settle` for a setting of one attribute, if at most one member of one collection
  /// reads it and nothing depends on that collection in turn: then only its fold has to be updated. `record` is the
  /// object after the setting. Returns false, having done nothing, in any other case.
  mutating func refold(_ key: ObservedKey, by record: ObjectRecord, in state: ModelState) -> Bool {
    guard dirty.isEmpty else { return false }
    let links = linksByKey[key]
    guard let link = links.only else { return links.isEmpty }
    guard case .reference(let member) = link.member, member == key.object, !linksByKey.contains(link.watch) else {
      return false
    }
    return watches[link.watch]?.refold(link.member, attribute: key.key, by: record, in: state) ?? false
  }

  /// Marks the members that depend on a key, and those that depend on the folds of their collections.
  mutating func touch(_ key: ObservedKey) {
    for link in links(dependingOn: key) {
      guard dirty[link.watch, default: SmallSet()].insert(link.member) else { continue }
      touch(link.watch)
    }
  }

  /// Returns the watches of a collection. Dependents of the watches depend on the collection.
  func watches(of list: ObservedKey) -> [ObservedKey] { watchesByList[list] ?? [] }

  /// Applies the changes of an operation, and recomputes the folds.
  mutating func update(
    _ changes: [Commit.KeyChange], rewiring links: some Sequence<Link>, in reader: some ObjectReader
  ) {
    for change in changes {
      update(ObservedKey(object: change.object, key: change.key), change.collection, in: reader)
    }
    rewire(links, in: reader)
    settle(in: reader)
  }

  /// Applies the changes of an operation to the members of a collection.
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
      // Marks what depends on this fold in turn.
      touch(watch)
    }
  }

  /// Follows again the members whose paths lead elsewhere after an operation.
  mutating func rewire(_ links: some Sequence<Link>, in reader: some ObjectReader) {
    for entry in links where watches[entry.watch]?.links[entry.member] != nil {
      link(entry.member, to: entry.watch, in: reader)
    }
  }

  /// Recomputes the contributions of the marked members, inner collections first.
  mutating func settle(in reader: some ObjectReader) {
    while let watch = dirty.keys.first { settle(watch, in: reader) }
  }

  /// Recomputes the marked members of a watch. A watch without a fold has nothing to recompute, but its members may
  /// read folds of others.
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
        // The member reads no fold, so the reader does not have to know any.
        contribution = reader.contribution(of: member, to: fold)
      }
      watches[watch]?.contribute(contribution, from: member)
    }
  }

  /// Returns the contribution of a member that reads folds. A separate function, so that no copy of the watches is
  /// alive when they are changed.
  private func contribution(
    of member: Value, to fold: CollectionFold, in reader: some ObjectReader
  ) -> RunningFold.Contribution {
    FoldingReader(base: reader, watches: self).contribution(of: member, to: fold)
  }

  // MARK: The end

  /// Removes and returns a watch that no member depends on, or on which none depended for a while; nil if there is
  /// none.
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
  /// Returns the members of a collection; an empty list if the object does not exist.
  func members(of list: ObservedKey) -> MemberList {
    guard let record = record(list.object),
      case .members(let members) = value(of: record, list.object, key: list.key)
    else { return MemberList(isOrdered: false) }
    return members
  }
}

/// A watch of one collection of one object: follows what is read of each member, and maintains the fold if there is
/// one. Observations that read the same share one watch.
struct CollectionWatch {
  /// One member.
  struct Link {
    /// The dependencies of the member along the current paths.
    var dependencies: [Dependency] { didSet { onlyAttribute = Self.onlyAttribute(of: dependencies) } }
    /// The key of the member that is its only dependency, with no computed key and no rule in between; nil otherwise.
    /// Stored, so that the dependencies need not be read.
    private(set) var onlyAttribute: Int32?
    /// The contribution of the member to the fold; nil before the first one.
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
  /// The branch of the key tree that is read of the members.
  let branch: KeyTree.Branch
  private(set) var links: [Value: Link] = [:]
  /// True once all members are followed. The fold is valid only then.
  fileprivate var isComplete = true
  fileprivate private(set) var running: RunningFold?

  /// Creates a watch without members.
  fileprivate init(list: ObservedKey, branch: KeyTree.Branch) {
    self.list = list
    self.branch = branch
    running = branch.fold.map(RunningFold.init)
  }

  /// Adds a member, or replaces its dependencies. Returns the previous dependencies.
  fileprivate mutating func link(_ member: Value, _ dependencies: [Dependency]) -> [Dependency] {
    guard let former = links[member] else {
      links[member] = Link(dependencies: dependencies)
      return []
    }
    links[member]?.dependencies = dependencies
    return former.dependencies
  }

  /// Removes a member. Returns its dependencies.
  fileprivate mutating func unlink(_ member: Value) -> [Dependency] {
    guard let link = links.removeValue(forKey: member) else { return [] }
    if let contribution = link.contribution { running?.remove(contribution) }
    return link.dependencies
  }

  /// Replaces the contribution of a member, which is `record` by now, if the attribute is all that is read of it.
  /// Returns false, having done nothing, if more is read.
  fileprivate mutating func refold(_ member: Value, attribute: Int, by record: ObjectRecord, in state: ModelState)
    -> Bool
  {
    guard let place = links.index(forKey: member), links.values[place].onlyAttribute == Int32(attribute) else {
      return false
    }
    guard let fold = branch.fold else { return true }
    // Mostly the value is in the record, which is at hand.
    let isFoldedItself = fold.attribute == attribute
    contribute(
      isFoldedItself ? .value(record.attribute(at: attribute)) : state.contribution(of: member, to: fold), at: place)
    return true
  }

  /// Replaces the contribution of a member.
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

/// A reader of a state with the folds of its watched collections, so that reading a sum does not read the members.
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

/// The folds of the watched collections: only those parts of the watches that reading needs, because a copy is made for
/// each reader.
struct KeptFolds {
  fileprivate let watches: [ObservedKey: CollectionWatch]
  /// The watches of a collection.
  fileprivate let watchesByList: [ObservedKey: [ObservedKey]]

  /// Returns the fold of a collection; nil if it is not maintained.
  func folded(_ fold: CollectionFold, of owner: Reference) -> FoldedValue? {
    for watch in watchesByList[ObservedKey(object: owner, key: fold.key)] ?? [] {
      if let found = watches[watch], found.branch.fold == fold, found.isComplete { return found.running?.value }
    }
    return nil
  }
}
