import KeyValueModel

/// What one operation touches, worked out before it is applied.
struct TouchedObservations {
  var triggers: [ObserverIndex.TrackedID: Trigger] = [:]
  /// Those whose paths may lead elsewhere afterwards.
  var redirected: Set<ObserverIndex.TrackedID> = []
  var redirectedLinks: Set<CollectionWatches.Link> = []
  /// Those that hear of it if a computed key on the way has another value.
  var gated: [(id: ObserverIndex.TrackedID, trigger: Trigger, gates: [ObservedKey])] = []
  /// The one change that touched an observation so far; nil after a second.
  var onlyPosition: [ObserverIndex.TrackedID: Int?] = [:]
  /// Those of viewers who may not read everything, that hear of it if what they see has another value.
  var guarded: Set<ObserverIndex.TrackedID> = []
  /// Those of such viewers that hear of it like any, because nothing of what they see is hidden.
  var plain: Set<ObserverIndex.TrackedID> = []
  var isNothing = true
  /// Whether members come to or go from a watched collection.
  var isReshaping = false

  /// Whether a collection may have other members afterwards, or a member other dependencies.
  var isRewiring: Bool { isReshaping || !redirected.isEmpty || !redirectedLinks.isEmpty }
}

/// Why an observation hears of an operation: the place of the first key, and how far it is from the observation.
struct Trigger {
  var keyPosition: Int
  var depth: Int
  /// What became of the members, where the observation ends at a collection that was changed and not set.
  var collection: Commit.CollectionChange?
}

extension [ObserverIndex.TrackedID: Trigger] {
  /// By key, nearness, cell and place: nothing that depends on the order of registration, except among observations
  /// that are identical.
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

  /// Those of which a new value is told that has to be worked out.
  func evaluated(in index: ObserverIndex) -> [ObserverIndex.TrackedID] {
    keys.filter { self[$0]?.collection == nil && index.tracked[$0]?.observation.options.contains(.new) ?? false }
  }

  /// Keeps the first reason that an observation has to hear of an operation.
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
  /// The key of an open bracket, the first opened of several, that one of the computed keys reads as well; nil where
  /// there is none, or where none was looked for.
  let holder: ObservedKey?
  /// True if the key only says whether an object may be read.
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

  /// When a key notifies its observers. An object that is not there, because it is about to be made again, keeps silent
  /// like any of its kind.
  func notifying(_ key: ObservedKey) -> Key.Notifying {
    let entity = record(key.object)?.entity ?? schema.entity(of: key.object)
    return entity?.notifying(key.key) ?? .always
  }
}
