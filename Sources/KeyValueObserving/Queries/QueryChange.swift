package import KeyValueModel

/// What became of one row of a live query (the specification, section 5).
package struct QueryChange: Sendable {
  /// The sort.
  package enum Kind: String, Hashable, Sendable {
    /// It is no longer in the list.
    case delete
    /// It stands among the others where it did not.
    case move
    /// It is in the list and was not.
    case insert
    /// It stands where it did among the others, and shows something else.
    case update
  }

  /// Why a row came or went.
  package enum Reason: String, Hashable, Sendable {
    /// The object was made.
    case created
    /// The object was there, and is in the list now.
    case entered
    /// The object was deleted.
    case deleted
    /// The object is there, and no longer in the list.
    case left
  }

  /// The sort.
  package let kind: Kind
  /// The object.
  package let object: Reference
  /// The place in the list before; nil for an insertion.
  package let index: RowPosition?
  /// The place in the list after; nil for a deletion.
  package let newIndex: RowPosition?
  /// Why, for insertions and deletions.
  package var reason: Reason?
  /// What has other values than before, for updates and moves.
  package let keys: [QueryColumn]
  /// What the row shows now; nil for a deletion.
  package let row: QueryRow?
  /// The last revision that set a stored key of the object.
  package var objectRevision: Revision = 0
}

/// A section that came or went.
package enum SectionChange: Sendable {
  /// It is at this place of the list after.
  case insert(name: Value, newIndex: Int)
  /// It was at this place of the list before.
  case delete(name: Value, index: Int)
}
