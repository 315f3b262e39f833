package import KeyValueModel

/// What turns the list before into the list after: the `content` of a live query.
///
/// A class, so that many observers of one query share it, and know by its identity that they do.
package final class QueryContent: Sendable {
  /// The query whose list it is after.
  package let query: Query
  /// The revision of the list after.
  package let revision: Revision
  /// The writer's name, where the transaction has one.
  package let writer: String?
  /// How many rows the list after has.
  package let count: Int
  /// How many rows there are after, those outside of the window too.
  package let total: Int
  /// For how many objects the filter fails after.
  package let failed: Int
  /// Deletions by their places before; then moves, insertions and updates, each by their places after.
  package let changes: [QueryChange]
  /// Sections that came, by their places after, and those that went, by their places before.
  package let sectionChanges: [SectionChange]
  /// All sections of the list after, where the query has both sections and aggregates.
  package let sections: [QueryResult.WindowSection]?
  /// What all rows come to after, where the query has no sections: a value for each of its aggregates.
  package let aggregates: [Value]
  /// Whether the list after is the list before, and all rows come to the same.
  package let isEmpty: Bool

  /// What became of a result, given its rows and sections that changed.
  init(
    from old: QueryResult, to new: QueryResult, revision: Revision, writer: String?, changes: [QueryChange],
    sectionChanges: [SectionChange]
  ) {
    query = new.query
    self.revision = revision
    self.writer = writer
    (count, total, failed) = (new.count, new.rowCount, new.failed)
    self.changes = changes
    self.sectionChanges = sectionChanges
    sections = new.query.aggregates.isEmpty ? nil : new.windowSections
    aggregates = new.aggregates
    isEmpty = changes.isEmpty && sectionChanges.isEmpty && new.isSummedUpLike(old)
  }
}

/// Merged contents: for subscribers that missed some, and for a query that was changed.
extension QueryContent {
  /// One content that turns a list into a later one: the same as all the contents between them, except for rows that
  /// came and went again.
  ///
  /// `old` is the result at the revision `then`; `new` that of the same query, or of another one that takes its place,
  /// in `state` at the revision `now`. Costs little more than what differs, or all of both windows where the queries
  /// differ.
  package convenience init(
    from old: QueryResult, at then: Revision, to new: QueryResult, in state: some ObjectReader, at now: Revision
  ) {
    let (rows, sections) = QueryDifference(from: old, to: new).changes()
    self.init(
      from: old, to: new, revision: now, writer: nil,
      changes: rows.map { change in
        change.explained(in: state) { state.record($0).map { $0.createdAt > then } ?? false }
      },
      sectionChanges: sections)
  }

  /// How many rows at the most turn one result into the other. Costs O(n) in nodes of the rows, not in rows.
  package static func size(from old: QueryResult, to new: QueryResult) -> Int {
    QueryDifference(from: old, to: new).size
  }
}

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
