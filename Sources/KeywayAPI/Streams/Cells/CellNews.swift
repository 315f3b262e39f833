internal import KeyValueObserving

/// What cells of one stream are told that is not the event of one commit, all of it as of one revision.
struct CellNews {
  /// Their first states.
  var initial: [Change] = []
  /// What they missed, merged.
  var coalesced: [Change] = []
  /// First rows of live queries, and what became of them, merged.
  var queries: [QueryNews] = []
  /// The objects that they lost.
  var gone: [ObserverEvent.Gone] = []
}
