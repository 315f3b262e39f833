package import KeyValueModel

/// What an event says of a section as a whole.
package struct LiveSummary: Hashable, Sendable {
  /// The value that its rows share.
  package var name: Value
  /// How many of its rows are in the list.
  package var count: Int
  /// What all its rows come to, those outside of the window too, by the text of the operators; nil where the query has
  /// none.
  package var aggregates: JSONObject?
}
