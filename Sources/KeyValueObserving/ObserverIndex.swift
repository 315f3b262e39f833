public import KeyValueModel

/// Who observes what: finds the observations that a change concerns without looking at the others.
///
/// Holds exactly what is registered; the order of registration has no influence on what is told.
public struct ObserverIndex: Sendable {
  /// An observation with what it depends on at the moment.
  struct Tracked {
    let observer: ObserverID
    let cell: String?
    /// Its place among the key paths that were registered with it.
    let position: Int
    let observation: Observation
    /// What the observed object is.
    let entity: Entity
    var dependencies: [Dependency]
  }

  typealias TrackedID = UInt64

  private(set) var tracked: [TrackedID: Tracked] = [:]
  private var idsByKey: [ObservedKey: Set<TrackedID>] = [:]
  private var idsByObject: [Reference: Set<TrackedID>] = [:]
  private var idsByObserver: [ObserverID: [String?: [TrackedID]]] = [:]
  private var nextID: TrackedID = 0

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
      let id = nextID
      nextID += 1
      let dependencies = reader.dependencies(of: observation.object, entity, at: observation.keyPath.keys)
      tracked[id] = Tracked(
        observer: observer, cell: cell, position: position, observation: observation, entity: entity,
        dependencies: dependencies)
      for dependency in dependencies { idsByKey[dependency.observedKey, default: []].insert(id) }
      idsByObject[observation.object, default: []].insert(id)
      idsByObserver[observer, default: [:]][cell, default: []].append(id)
    }
  }

  /// Ends the observations of one cell.
  public mutating func remove(_ observer: ObserverID, cell: String?) {
    for id in idsByObserver[observer]?.removeValue(forKey: cell) ?? [] { forget(id) }
    if idsByObserver[observer]?.isEmpty == true { idsByObserver[observer] = nil }
  }

  /// Ends all observations of an observer.
  public mutating func remove(_ observer: ObserverID) {
    for ids in (idsByObserver.removeValue(forKey: observer) ?? [:]).values { ids.forEach { forget($0) } }
  }

  private mutating func forget(_ id: TrackedID) {
    guard let entry = tracked.removeValue(forKey: id) else { return }
    unlink(id, entry.dependencies)
    idsByObject[entry.observation.object]?.remove(id)
    if idsByObject[entry.observation.object]?.isEmpty == true { idsByObject[entry.observation.object] = nil }
  }

  private mutating func unlink(_ id: TrackedID, _ dependencies: [Dependency]) {
    for dependency in dependencies {
      idsByKey[dependency.observedKey]?.remove(id)
      if idsByKey[dependency.observedKey]?.isEmpty == true { idsByKey[dependency.observedKey] = nil }
    }
  }

  /// How many (key, observation) pairs the index holds.
  var linkCount: Int { idsByKey.values.reduce(0) { $0 + $1.count } }

  // MARK: For the telling

  /// The observations that depend on a key of an object.
  func ids(dependingOn key: ObservedKey) -> Set<TrackedID> {
    idsByKey[key] ?? []
  }

  /// The observations that were registered with an object.
  func ids(of object: Reference) -> Set<TrackedID> {
    idsByObject[object] ?? []
  }

  /// Follows a path anew after one of its links was set.
  mutating func rewire(_ id: TrackedID, in reader: some ObjectReader) {
    guard let entry = tracked[id] else { return }
    let dependencies = reader.dependencies(
      of: entry.observation.object, entry.entity, at: entry.observation.keyPath.keys)
    unlink(id, entry.dependencies)
    for dependency in dependencies { idsByKey[dependency.observedKey, default: []].insert(id) }
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
