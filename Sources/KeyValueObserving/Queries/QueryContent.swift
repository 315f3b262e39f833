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
