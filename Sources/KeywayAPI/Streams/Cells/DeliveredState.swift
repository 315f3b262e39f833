import KeyValueModel
import KeyValueObserving
import ModelStore

/// What the cells of a stream have been sent: the objects as they were, and the rows of live queries.
struct DeliveredState {
  /// The objects.
  let reader: any ObjectReader
  /// The last revision that was sent.
  let revision: Revision
  /// The rows of a query, nil where they are not known any more.
  let result: (Query) -> QueryResult?

  /// The present, which a stream has that is sent everything.
  init(present publication: borrowing Publication) {
    let queries = publication.queries
    self.init(
      reader: publication.snapshot.state, revision: publication.snapshot.revision,
      result: { queries.result(of: $0) })
  }

  /// The state right after a revision; nil where the history does not reach back so far.
  init?(after revision: Revision, _ publication: borrowing Publication) {
    guard let past = publication.past(after: revision) else { return nil }
    let queries = publication.queries
    self.init(reader: past, revision: revision, result: { queries.result(of: $0, before: revision + 1) })
  }

  /// A state of the past.
  init(reader: any ObjectReader, revision: Revision, result: @escaping (Query) -> QueryResult?) {
    self.reader = reader
    self.revision = revision
    self.result = result
  }
}
