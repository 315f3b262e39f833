import KeyValueObserving

/// What cells of one stream receive that is not the event of one commit, all of it as of one revision.
struct CellUpdate {
  /// Their first states.
  var initial: [Change] = []
  /// What they missed, merged.
  var coalesced: [Change] = []
  /// First rows of live queries, and what became of them, merged.
  var queries: [QueryNotification] = []
  /// The objects that they lost.
  var gone: [ObserverEvent.Gone] = []
}
