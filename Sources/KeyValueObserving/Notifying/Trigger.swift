import KeyValueModel

/// Why an observation hears of an operation: the place of the first key, and how far it is from the observation.
struct Trigger {
  var keyPosition: Int
  var depth: Int
  /// What became of the members, where the observation ends at a collection that was changed and not set.
  var collection: Commit.CollectionChange?
}
