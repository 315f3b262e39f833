internal import KeyValueModel

/// What is worked out, before anything is locked, for a stream of one object that goes on where an earlier one ended.
struct ResumedTopic {
  /// The objects that the observed values were read through a moment ago, all of which were there; nil where that is not
  /// known or some were not.
  var objects: Set<Reference>?
  /// What was missed.
  var replay: TopicReplay?
}
