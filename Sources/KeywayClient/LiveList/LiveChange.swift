package import KeyValueModel

/// What one commit did to one row of a live list.
package struct LiveChange: Hashable, Sendable {
  /// What became of a row.
  package enum Kind: String, Hashable, Sendable {
    case insert, delete, move, update

    /// Whether the row was in the list before.
    package var hasIndex: Bool { self != .insert }
    /// Whether the row is in the list afterwards.
    package var hasNewIndex: Bool { self != .delete }
  }

  /// What became of it.
  package var kind: Kind
  /// The object that it shows.
  package var reference: Reference
  /// Its place in the list before the commit; nil for an insertion.
  package var index: LiveIndex?
  /// Its place in the list after the commit; nil for a deletion.
  package var newIndex: LiveIndex?
  /// Its value after the commit; nil for a deletion.
  package var value: JSONObject?
  /// The keys whose values are others, of an update or a move.
  package var keys: [String] = []
  /// Why it came or went: `created`, `entered`, `deleted` or `left`.
  package var reason: String?
}
