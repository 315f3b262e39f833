public import KeyValueModel

/// The observations, and which of them a change concerns, found without looking at the others.
///
/// Holds exactly what is registered; the order of registration has no influence on what is delivered.
public struct ObserverIndex: Sendable {
  /// An observation as it was registered. A class, because it is immutable and looked up often: a copy counts one
  /// reference.
  final class Registration: Sendable {
    let observer: ObserverID
    let cell: String?
    /// Its place among the key paths that were registered with it.
    let position: Int
    let observation: Observation
    /// What the observed object is.
    let entity: Entity
    /// The attribute that it observes, of the object itself, and that is then all that it depends on; nil where the
    /// path is any other, or a rule has a say.
    let attribute: Int?

    init(observer: ObserverID, cell: String?, position: Int, observation: Observation, entity: Entity) {
      self.observer = observer
      self.cell = cell
      self.position = position
      self.observation = observation
      self.entity = entity
      let path = observation.keyPath
      let isOne = path.keys.count == 1 && path.operation == nil && observation.viewer == nil
      attribute = isOne && entity.isAttribute(path.keys[0]) ? path.keys[0] : nil
    }
  }

  /// An observation with what it depends on at the moment.
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

  private(set) var tracked = SlotTable<Tracked>()
  private var idsByKey: [ObservedKey: SmallSet<TrackedID>] = [:]
  private var idsByObject: [Reference: SmallSet<TrackedID>] = [:]
  private var idsByObserver: [ObserverID: [String?: [TrackedID]]] = [:]
  /// How many observations are of viewers who may not read everything.
  private(set) var guardedCount = 0
  /// The collections that the observations read through.
  var collections = CollectionWatches()
  /// Watches that an observation no longer depends on.
  private var orphans: Set<ObservedKey> = []

  /// An index of nothing.
  public init() {}

  /// How many observations there are.
  public var count: Int { tracked.count }

  /// Begins observations on behalf of an observer, in one of its cells or, with nil, as a whole. Their objects exist in
  /// `reader`. The same observation may be registered several times: it is told as often.
  public mutating func add(
    _ observations: [Observation], of observer: ObserverID, cell: String? = nil, in reader: some ObjectReader
  ) {
    for (position, observation) in observations.enumerated() {
      guard let entity = reader.record(observation.object)?.entity else {
        assertionFailure("\(observation.object) is observed and not there")
        continue
      }
      let dependencies = collections.dependencies(
        of: observation.reads, from: observation.object, entity, isGuarded: observation.viewer != nil, in: reader)
      let registration = Registration(
        observer: observer, cell: cell, position: position, observation: observation, entity: entity)
      let id = tracked.insert(Tracked(registration: registration, dependencies: dependencies))
      for dependency in dependencies { idsByKey[dependency.observedKey, default: SmallSet()].insert(id) }
      if observation.viewer != nil { guardedCount += 1 }
      idsByObject[observation.object, default: SmallSet()].insert(id)
      idsByObserver[observer, default: [:]][cell, default: []].append(id)
    }
    collections.settle(in: reader)
  }

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
      if idsByKey[watch] == nil { collections.end(watch) }
    }
  }

  private mutating func forget(_ id: TrackedID) {
    guard let entry = tracked.remove(id) else { return }
    if entry.observation.viewer != nil { guardedCount -= 1 }
    unlink(id, entry.dependencies)
    idsByObject.remove(id, from: entry.observation.object)
  }

  private mutating func unlink(_ id: TrackedID, _ dependencies: [Dependency]) {
    for dependency in dependencies {
      let key = dependency.observedKey
      if idsByKey.remove(id, from: key), key.isCollection { orphans.insert(key) }
    }
  }

  /// How many (key, observation) pairs the index holds.
  var linkCount: Int { idsByKey.values.reduce(0) { $0 + $1.count } }

  // MARK: For notifying

  /// The observations that depend on a key of an object.
  func ids(dependingOn key: ObservedKey) -> SmallSet<TrackedID> {
    idsByKey[key] ?? SmallSet()
  }

  /// The observations that were registered with an object.
  func ids(of object: Reference) -> SmallSet<TrackedID> {
    idsByObject[object] ?? SmallSet()
  }

  /// Follows a path anew after one of its links was set. The folds hold again once they are settled.
  mutating func rewire(_ id: TrackedID, in reader: some ObjectReader) {
    guard let entry = tracked[id] else { return }
    let dependencies = collections.dependencies(
      of: entry.observation.reads, from: entry.observation.object, entry.entity,
      isGuarded: entry.observation.viewer != nil, in: reader)
    unlink(id, entry.dependencies)
    for dependency in dependencies { idsByKey[dependency.observedKey, default: SmallSet()].insert(id) }
    tracked[id]?.dependencies = dependencies
  }

  /// Takes an observation out of sight: no key finds it until it is rewired. It remains registered.
  mutating func unwire(_ id: TrackedID) {
    guard let entry = tracked[id] else { return }
    unlink(id, entry.dependencies)
    tracked[id]?.dependencies = []
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
