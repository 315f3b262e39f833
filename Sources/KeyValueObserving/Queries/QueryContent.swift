package import KeyValueModel

/// The changes that turn the list before into the list after: the `content` of a live query.
///
/// A class, so that many observers of one query share it, and recognize that by its identity.
package final class QueryContent: Sendable {
  /// The query of the list after.
  package let query: Query
  /// The revision of the list after.
  package let revision: Revision
  /// The writer's name, if the transaction has one.
  package let writer: String?
  /// The number of rows in the list after.
  package let count: Int
  /// The number of all rows after, including those outside of the window.
  package let total: Int
  /// The number of objects for which the filter fails after.
  package let failed: Int
  /// Deletions, by their indexes before; then moves, insertions and updates, each by their indexes after.
  package let changes: [QueryChange]
  /// Inserted sections, by their indexes after, and deleted sections, by their indexes before.
  package let sectionChanges: [SectionChange]
  /// All sections of the list after, if the query has both sections and aggregates.
  package let sections: [QueryResult.WindowSection]?
  /// The aggregates of all rows after, if the query has no sections: a value for each of its aggregates.
  package let aggregates: [Value]
  /// True if the list after equals the list before, and so do the aggregates of all rows.
  package let isEmpty: Bool

  /// Creates the content between two results, given the rows and sections that changed.
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
  /// Creates one content that turns a list into a later one. It is equivalent to all the contents between them, except
  /// for rows that were inserted and deleted again.
  ///
  /// `old` is the result at the revision `then`; `new` is that of the same query, or of another one that replaces it,
  /// in `state` at the revision `now`. The cost is little more than that of the differences, or that of both windows if
  /// the queries differ.
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

  /// Returns the maximum number of rows that turn one result into the other. Costs O(n) in nodes of the rows, not in
  /// rows.
  package static func size(from old: QueryResult, to new: QueryResult) -> Int {
    QueryDifference(from: old, to: new).size
  }
}

/// A change of one row of a live query (the specification, section 5).
package struct QueryChange: Sendable {
  /// The kind of the change.
  package enum Kind: String, Hashable, Sendable {
    /// The row is no longer in the list.
    case delete
    /// The row has another position among the others.
    case move
    /// The row is in the list and was not before.
    case insert
    /// The row has the same position among the others, and shows something else.
    case update
  }

  /// The reason why a row was inserted or deleted.
  package enum Reason: String, Hashable, Sendable {
    /// The object was created.
    case created
    /// The object existed before, and is in the list now.
    case entered
    /// The object was deleted.
    case deleted
    /// The object still exists, and is no longer in the list.
    case left
  }

  /// The kind of the change.
  package let kind: Kind
  /// The object.
  package let object: Reference
  /// The position in the list before; nil for an insertion.
  package let index: RowPosition?
  /// The position in the list after; nil for a deletion.
  package let newIndex: RowPosition?
  /// The reason, for insertions and deletions.
  package var reason: Reason?
  /// The columns whose values changed, for updates and moves.
  package let keys: [QueryColumn]
  /// The row as it is now; nil for a deletion.
  package let row: QueryRow?
  /// The last revision that set a stored key of the object.
  package var objectRevision: Revision = 0
}

/// A section that was inserted or deleted.
package enum SectionChange: Sendable {
  /// The section is at this index of the list after.
  case insert(name: Value, newIndex: Int)
  /// The section was at this index of the list before.
  case delete(name: Value, index: Int)
}
