package import KeyValueModel

/// A section of a live list with its rows, as it is now.
package struct LiveSection: Hashable, Sendable {
  /// The value that its rows share; nil in a list without sections.
  package var name: Value?
  /// The rows from the top.
  package var rows: [LiveRow]
  /// How many rows it has.
  package var count: Int { rows.count }
}
