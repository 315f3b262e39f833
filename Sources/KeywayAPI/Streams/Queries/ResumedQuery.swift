internal import KeyValueModel
internal import ModelStore

/// What is worked out, before anything is locked, for a stream of a live query.
struct ResumedQuery {
  /// The query, where somebody has evaluated it.
  var prepared: [Query: PreparedQuery] = [:]
  /// What the stream is told of the first contents that were missed, encoded.
  var bytes: [UInt8] = []
  /// How many contents that are.
  var encoded = 0
}
