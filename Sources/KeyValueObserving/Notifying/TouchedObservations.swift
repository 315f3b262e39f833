import KeyValueModel

/// The observations that one operation touches, determined before it is applied.
struct TouchedObservations {
  var triggers: [ObserverIndex.TrackedID: Trigger] = [:]
  /// The observations whose paths may lead elsewhere afterwards.
  var redirected: Set<ObserverIndex.TrackedID> = []
  var redirectedLinks: Set<CollectionWatches.Link> = []
  /// The observations to notify only if a computed key on their path changed.
  var gated: [(id: ObserverIndex.TrackedID, trigger: Trigger, gates: [ObservedKey])] = []
  /// The position of the only change that touched each observation so far; nil after a second one.
  var onlyPosition: [ObserverIndex.TrackedID: Int?] = [:]
  /// The observations of viewers who may not read everything, to notify only if the value that they see changed.
  var guarded: Set<ObserverIndex.TrackedID> = []
  /// The observations of such viewers to notify like any other, because nothing of what they see is hidden.
  var plain: Set<ObserverIndex.TrackedID> = []
  var isNothing = true
  /// True if the members of a watched collection may change.
  var isReshaping = false

  /// True if a collection may have other members, or an observation or member other dependencies, afterwards.
  var isRewiring: Bool { isReshaping || !redirected.isEmpty || !redirectedLinks.isEmpty }
}

/// The reason why an operation notifies an observation: the position of the first key, and its distance from the
/// observation.
struct Trigger {
  var keyPosition: Int
  var depth: Int
  /// The change of the members, if the observation ends at a collection that was changed and not set.
  var collection: Commit.CollectionChange?
}

extension [ObserverIndex.TrackedID: Trigger] {
  /// Sorts observations by key, distance, cell and position. The result does not depend on the order of registration,
  /// except among identical observations.
  func sorted(_ ids: [ObserverIndex.TrackedID], in index: ObserverIndex) -> [ObserverIndex.TrackedID] {
    guard ids.count > 1 else { return ids }
    return
      ids
      .compactMap { id in index.tracked[id].map { (id, $0, self[id] ?? Trigger(keyPosition: 0, depth: 0)) } }
      .sorted { left, right in
        let leftRank = (left.2.keyPosition, left.2.depth, left.1.cell ?? "", left.1.position, left.0)
        let rightRank = (right.2.keyPosition, right.2.depth, right.1.cell ?? "", right.1.position, right.0)
        return leftRank < rightRank
      }
      .map(\.0)
  }

  /// Returns the observations whose notification has a new value that must be evaluated.
  func evaluated(in index: ObserverIndex) -> [ObserverIndex.TrackedID] {
    keys.filter { self[$0]?.collection == nil && index.tracked[$0]?.observation.options.contains(.new) ?? false }
  }

  /// Adds a reason to notify an observation, of which the first is kept. Different collection changes make the change a
  /// setting.
  mutating func merge(_ trigger: Trigger, for id: ObserverIndex.TrackedID) {
    guard var present = self[id] else {
      self[id] = trigger
      return
    }
    if present.collection != trigger.collection {
      present.collection = nil
      self[id] = present
    }
    if (trigger.keyPosition, trigger.depth) < (present.keyPosition, present.depth) {
      self[id]?.keyPosition = trigger.keyPosition
      self[id]?.depth = trigger.depth
    }
  }
}

/// An observation that a key reaches, by one of the ways.
struct Reached {
  let id: ObserverIndex.TrackedID
  /// The computed keys on the way, outermost first.
  let gates: [ObservedKey]
  /// True if the way leads through no collection.
  let isDirect: Bool
  /// The key of an open bracket, the first opened of several, that one of the computed keys reads as well; nil if there
  /// is none, or if none was looked for.
  let holder: ObservedKey?
  /// True if the key only decides whether an object may be read.
  let isOfRule: Bool
}

/// The part of a way between a key and what depends on it.
struct Stretch {
  var gates: [ObservedKey] = []
  var isDirect = true
  var holder: ObservedKey?
  var isOfRule = false
  let isFindingHolders: Bool
}

extension ObserverIndex {
  /// True if the path of an observation that was reached ends at a collection key.
  func isEnd(_ key: ObservedKey, of entry: Reached) -> Bool {
    guard entry.isDirect, entry.gates.isEmpty, let path = tracked[entry.id]?.observation.keyPath else { return false }
    return path.operation == nil && path.keys.last == key.key
  }
}

extension PastState {
  /// True if setting the key can make a path lead elsewhere.
  func isLink(_ key: ObservedKey) -> Bool {
    guard let entity = record(key.object)?.entity else { return true }
    if entity.isAttribute(key.key) { return false }
    switch entity.keys[key.key].kind {
    case .attribute, .toMany: return false
    case .toOne, .computed: return true
    }
  }

  /// Returns when a key notifies its observers. For an object that does not exist, because it is about to be created
  /// again, the `notifies` of its entity applies.
  func notifying(_ key: ObservedKey) -> Key.Notifying {
    let entity = record(key.object)?.entity ?? schema.entity(of: key.object)
    return entity?.notifying(key.key) ?? .always
  }
}
