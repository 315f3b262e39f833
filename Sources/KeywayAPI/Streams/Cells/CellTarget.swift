internal import KeyValueModel
internal import KeyValueObserving
internal import ModelStore

/// What a binding names, resolved: observations of an object, a live query, or nothing.
struct CellTarget {
  /// What is observed of an object.
  var observations: [Observation] = []
  /// The live query.
  var query: Query?
  /// The live query with its rows, where nobody watches it yet.
  var finished: PreparedQuery?
}
