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
