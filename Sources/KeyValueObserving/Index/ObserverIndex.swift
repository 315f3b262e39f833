public import KeyValueModel

/// An index of observations that finds those that a change concerns without looking at the others.
///
/// Holds exactly what is registered; the order of registration has no influence on what is delivered.
public struct ObserverIndex: Sendable {
  /// A registered observation, in one piece of memory with its parts: notifying one among very many observations costs
  /// little more than reading its memory.
  ///
  /// `@unchecked Sendable`, because the superclass is: all properties are constant.
  final class Registration: Observation.Parts, @unchecked Sendable {
    let observer: ObserverID
    let cell: String?
    /// The position among the key paths that were registered together with it.
    let position: Int
    /// The entity of the observed object.
    let entity: Entity
    /// The observed attribute of the object itself, which is then the only dependency; nil if the path is any other, or
    /// a rule applies.
    let attribute: Int?
    /// The number of the observed value, which is the same for all observations of the same value; 0 if the value is an
    /// attribute.
    let valueNumber: Int

    fileprivate init(
      observer: ObserverID, cell: String?, position: Int, observation: Observation, entity: Entity,
      _ numbers: inout ValueNumbers
    ) {
      self.observer = observer
      self.cell = cell
      self.position = position
      self.entity = entity
      let path = observation.keyPath
      let isOne = path.keys.count == 1 && path.operation == nil && observation.viewer == nil
      attribute = isOne && entity.isAttribute(path.keys[0]) ? path.keys[0] : nil
      valueNumber = attribute == nil ? numbers.retain(observation) : 0
      super.init(
        observation.object, path, observation.options, observation.context, observation.viewer)
    }

    var observation: Observation { Observation(self) }
  }

  /// An observation with its current dependencies.
  struct Tracked {
    let registration: Registration
    var dependencies: [Dependency]

    var observer: ObserverID { registration.observer }
    var cell: String? { registration.cell }
    var position: Int { registration.position }
    var observation: Observation { registration.observation }
    var entity: Entity { registration.entity }
  }

  typealias TrackedID = SlotTable<Tracked>.ID

  /// An observation as it is found by key. Notifying an observation of an attribute needs nothing else.
  struct Listener: Hashable {
    let id: TrackedID
    let registration: Registration

    static func == (one: Listener, other: Listener) -> Bool { one.id == other.id }

    func hash(into hasher: inout Hasher) { hasher.combine(id) }
  }

  private(set) var tracked = SlotTable<Tracked>()
  private var listenersByKey = KeyedSets<Listener>()
  private var idsByObject: [Reference: SmallSet<TrackedID>] = [:]
  private var idsByObserver: [ObserverID: [String?: [TrackedID]]] = [:]
  private var valueNumbers = ValueNumbers()
  /// The number of observations of viewers who may not read everything.
  private(set) var guardedCount = 0
  /// The collections that the observations read through.
  var collections = CollectionWatches()
  /// The clients that pay for evaluating the observations.
  private(set) var payers = ObserverPayers()
  /// Watches that an observation no longer depends on.
  private var orphans: Set<ObservedKey> = []

  /// Creates an empty index.
  public init() {}

  /// The number of observations.
  public var count: Int { tracked.count }

  /// Limits the number of members of collections that are followed. Beyond it, `isOverLimit` is true and the index must
  /// not be used.
  package mutating func limitLinks(to limit: Int) { collections.linkLimit = limit }

  /// True if there would be more members of collections to follow than `limitLinks` allows.
  package var isOverLimit: Bool { collections.isOverLimit }

  /// The collections that observations are about to read through, followed before these are registered.
  package struct Following: Sendable {
    fileprivate var watches: Set<ObservedKey> = []

    /// Creates an empty set of collections.
    package init() {}

    /// True if no collection is followed.
    package var isEmpty: Bool { watches.isEmpty }
  }

  /// Follows `count` more members of the collections that observations read through, so that the time to register the
  /// observations depends on their number alone. Returns true once all members are followed.
  package mutating func follow(
    _ observations: Set<Observation>, _ following: inout Following, members count: Int, in reader: some ObjectReader
  ) -> Bool {
    if following.watches.isEmpty || following.watches.contains(where: { collections.watches[$0] == nil }) {
      following.watches = []
      for observation in observations {
        guard let entity = reader.record(observation.object)?.entity else { continue }
        following.watches.formUnion(
          collections.begin(
            observation.reads, from: observation.object, entity, isGuarded: observation.viewer != nil, in: reader))
      }
    }
    return collections.finish(count, in: reader)
  }

  /// Ends the following of collections that no observation depends on.
  package mutating func end(_ following: Following) {
    collections.release(following.watches)
    sweep()
  }

  /// Begins observations on behalf of an observer, in one of its cells or, with nil, as a whole. Their objects exist in
  /// `reader`. An observation may be registered several times, and is then notified as many times.
  public mutating func add(
    _ observations: [Observation], of observer: ObserverID, cell: String? = nil, in reader: some ObjectReader
  ) {
    for (position, observation) in observations.enumerated() {
      guard let entity = reader.record(observation.object)?.entity else {
        assertionFailure("\(observation.object) is observed and does not exist")
        continue
      }
      let dependencies = collections.dependencies(
        of: observation.reads, from: observation.object, entity, isGuarded: observation.viewer != nil, in: reader)
      let registration = Registration(
        observer: observer, cell: cell, position: position, observation: observation, entity: entity, &valueNumbers)
      let id = tracked.insert(Tracked(registration: registration, dependencies: dependencies))
      link(Listener(id: id, registration: registration), dependencies)
      if observation.viewer != nil { guardedCount += 1 }
      idsByObject[observation.object, default: SmallSet()].insert(id)
      idsByObserver[observer, default: [:]][cell, default: []].append(id)
    }
    collections.settle(in: reader)
  }

  /// Charges a client for evaluating the observations of an observer: once for each stream that the client has of it.
  package mutating func charge(_ observer: ObserverID, to payer: QueryPayer) { payers.charge(observer, to: payer) }

  /// Reverses one such charge; does nothing if there is none.
  package mutating func discharge(_ observer: ObserverID, of payer: QueryPayer) {
    payers.discharge(observer, of: payer)
  }

  /// True if an observer has any observations.
  func observes(_ observer: ObserverID) -> Bool { idsByObserver[observer] != nil }

  /// Ends the observations of one cell.
  public mutating func remove(_ observer: ObserverID, cell: String?) {
    for id in idsByObserver[observer]?.removeValue(forKey: cell) ?? [] { forget(id) }
    if idsByObserver[observer]?.isEmpty == true { idsByObserver[observer] = nil }
    sweep()
  }

  /// Ends all observations of an observer.
  public mutating func remove(_ observer: ObserverID) {
    for ids in (idsByObserver.removeValue(forKey: observer) ?? [:]).values { ids.forEach { forget($0) } }
    sweep()
  }

  /// Ends the watches of collections without dependents. Between the operations of a commit they stay, because a later
  /// operation may need them again.
  mutating func sweep() {
    while let watch = orphans.popFirst() ?? collections.popOrphan() {
      if !listenersByKey.contains(watch) { collections.end(watch) }
    }
  }

  private mutating func forget(_ id: TrackedID) {
    guard let entry = tracked.remove(id) else { return }
    if entry.observation.viewer != nil { guardedCount -= 1 }
    if entry.registration.attribute == nil { valueNumbers.release(entry.observation) }
    unlink(Listener(id: id, registration: entry.registration), entry.dependencies)
    idsByObject.remove(id, from: entry.observation.object)
  }

  private mutating func link(_ listener: Listener, _ dependencies: [Dependency]) {
    for dependency in dependencies { listenersByKey.insert(listener, for: dependency.observedKey) }
  }

  private mutating func unlink(_ listener: Listener, _ dependencies: [Dependency]) {
    for dependency in dependencies {
      let key = dependency.observedKey
      if listenersByKey.remove(listener, from: key), key.isCollection { orphans.insert(key) }
    }
  }

  /// The number of (key, observation) pairs in the index.
  var linkCount: Int { listenersByKey.pairCount }

  // MARK: For notifying

  /// Returns the observations that depend on a key of an object.
  func listeners(dependingOn key: ObservedKey) -> SmallSet<Listener> { listenersByKey[key] }

  /// Returns the observations that were registered for an object.
  func ids(of object: Reference) -> SmallSet<TrackedID> {
    idsByObject[object] ?? SmallSet()
  }

  /// Follows a path again after one of its links was set. The folds are valid again once they are settled.
  mutating func rewire(_ id: TrackedID, in reader: some ObjectReader) {
    guard let entry = tracked[id] else { return }
    let dependencies = collections.dependencies(
      of: entry.observation.reads, from: entry.observation.object, entry.entity,
      isGuarded: entry.observation.viewer != nil, in: reader)
    let listener = Listener(id: id, registration: entry.registration)
    unlink(listener, entry.dependencies)
    link(listener, dependencies)
    tracked[id]?.dependencies = dependencies
  }

  /// Detaches an observation: no key finds it until it is rewired. It remains registered.
  mutating func unwire(_ id: TrackedID) {
    guard let entry = tracked[id] else { return }
    unlink(Listener(id: id, registration: entry.registration), entry.dependencies)
    tracked[id]?.dependencies = []
  }

  /// Attaches detached observations again, and ends those of objects that their viewers may not read any more. Returns
  /// the ended ones by observer.
  mutating func rewire(
    _ ids: [TrackedID], in reader: some ObjectReader
  ) -> [ObserverID: Set<ObserverEvent.Gone>] {
    var gone: [ObserverID: Set<ObserverEvent.Gone>] = [:]
    for id in ids {
      guard let entry = tracked[id] else { continue }
      rewire(id, in: reader)
      let object = entry.observation.object
      if let viewer = entry.observation.viewer, !reader.exists(object, for: viewer) {
        gone[entry.observer, default: []].insert(.init(of: entry.observation, in: entry.cell))
        end(id)
      }
    }
    if !ids.isEmpty { collections.settle(in: reader) }
    return gone
  }

  /// Ends one observation.
  mutating func end(_ id: TrackedID) {
    guard let entry = tracked[id] else { return }
    idsByObserver[entry.observer]?[entry.cell]?.removeAll { $0 == id }
    if idsByObserver[entry.observer]?[entry.cell]?.isEmpty == true {
      idsByObserver[entry.observer]?[entry.cell] = nil
    }
    if idsByObserver[entry.observer]?.isEmpty == true { idsByObserver[entry.observer] = nil }
    forget(id)
  }
}

/// The clients that pay for evaluating what observers observe.
struct ObserverPayers: Sendable {
  /// By observer, each client with the number of its streams.
  private var counts: [ObserverID: [QueryPayer: Int]] = [:]

  /// True if no client is charged for anything.
  var isEmpty: Bool { counts.isEmpty }

  /// The clients that pay for an observer: at least one, which is `unknown` where none was charged.
  subscript(observer: ObserverID) -> [QueryPayer] { counts[observer].map { Array($0.keys) } ?? [.unknown] }

  /// Charges a client for an observer: once for each of its streams.
  mutating func charge(_ observer: ObserverID, to payer: QueryPayer) {
    counts[observer, default: [:]][payer, default: 0] += 1
  }

  /// Reverses one such charge; does nothing if there is none.
  mutating func discharge(_ observer: ObserverID, of payer: QueryPayer) {
    guard let count = counts[observer]?[payer] else { return }
    counts[observer]?[payer] = count > 1 ? count - 1 : nil
    if counts[observer]?.isEmpty == true { counts[observer] = nil }
  }
}

/// The object, key path and viewer that observations of the same value have in common.
struct ValueKey: Hashable {
  let object: Reference
  let keyPath: ModelKeyPath
  let viewer: Viewer?

  /// Creates the key of an observation's value.
  init(_ observation: Observation) {
    (object, keyPath, viewer) = (observation.object, observation.keyPath, observation.viewer)
  }
}

/// Numbers for observed values. Observations of the same object, key path and viewer have the same number, so that a
/// value that was evaluated for one of them is found for the others without comparing names.
private struct ValueNumbers {
  private var known: [ValueKey: (number: Int, count: Int)] = [:]
  private var last = 0

  /// Returns the number of an observation's value, always positive, and counts one more use of it.
  mutating func retain(_ observation: Observation) -> Int {
    let key = ValueKey(observation)
    if let present = known[key] {
      known[key] = (present.number, present.count + 1)
      return present.number
    }
    last += 1
    known[key] = (last, 1)
    return last
  }

  /// Counts one use less of the number of an observation's value. With the last one, the number is removed.
  mutating func release(_ observation: Observation) {
    let key = ValueKey(observation)
    guard let present = known[key] else { return }
    known[key] = present.count > 1 ? (present.number, present.count - 1) : nil
  }
}
