package import KeyValueModel

/// A section of a live list with its rows, as it is now.
package struct LiveSection: Hashable, Sendable {
  /// The value that its rows share; nil in a list without sections.
  package var name: Value?
  /// The rows from the top.
  package var rows: [LiveRow]
  /// What all its rows come to, those outside of the window too, by the text of the operators; nil where the query has
  /// none.
  package var aggregates: JSONObject?
  /// How many rows it has.
  package var count: Int { rows.count }
}
