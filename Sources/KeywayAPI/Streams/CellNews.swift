internal import KeyValueObserving

/// What cells of one stream are told that is not the event of one commit, all of it as of one revision.
struct CellNews {
  /// Their first states.
  var initial: [Change] = []
  /// What they missed, merged.
  var coalesced: [Change] = []
  /// The objects that they lost.
  var gone: [ObserverEvent.Gone] = []
}
