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
  /// Deletions by their places before; then moves, insertions and updates, each by their places after.
  package let changes: [QueryChange]
  /// Sections that came, by their places after, and those that went, by their places before.
  package let sectionChanges: [SectionChange]

  init(
    query: Query, revision: Revision, writer: String?, count: Int, changes: [QueryChange],
    sectionChanges: [SectionChange]
  ) {
    self.query = query
    self.revision = revision
    self.writer = writer
    self.count = count
    self.changes = changes
    self.sectionChanges = sectionChanges
  }

  /// Whether the list after is the list before.
  package var isEmpty: Bool { changes.isEmpty && sectionChanges.isEmpty }
}
