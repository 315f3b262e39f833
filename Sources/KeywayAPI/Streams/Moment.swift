internal import KeyValueModel
internal import KeyValueObserving
internal import ModelStore

/// What somebody has been told: the objects as they were, and the rows of live queries.
struct Moment {
  /// The objects.
  let reader: any ObjectReader
  /// The revision that was told last.
  let revision: Revision
  /// The rows of a query, nil where they are no longer known.
  let result: (Query) -> QueryResult?

  /// What is told to those who are told everything.
  init(present publication: borrowing Publication) {
    reader = publication.snapshot.state
    revision = publication.snapshot.revision
    let queries = publication.queries
    result = { queries.result(of: $0) }
  }

  /// The moment right after a revision; nil where the history does not reach back so far.
  init?(after revision: Revision, _ publication: borrowing Publication) {
    guard let past = publication.past(after: revision) else { return nil }
    reader = past
    self.revision = revision
    let queries = publication.queries
    result = { queries.result(of: $0, before: revision + 1) }
  }

  /// A moment of the past.
  init(reader: any ObjectReader, revision: Revision, result: @escaping (Query) -> QueryResult?) {
    self.reader = reader
    self.revision = revision
    self.result = result
  }
}
