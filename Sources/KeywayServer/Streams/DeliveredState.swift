import KeyValueModel
import KeyValueObserving
import Store

/// The state that was sent to a stream or its cells: the objects as they were, and the rows of live queries.
struct DeliveredState {
  /// The objects.
  let reader: any ObjectReader
  /// The last revision sent.
  let revision: Revision
  /// Returns the rows of a query, or nil if they are no longer known.
  let result: (Query) -> QueryResult?

  /// Creates the present state, which a stream that misses nothing has, with the values of it that are already known.
  init(present publication: borrowing Publication, _ values: ObservedValues? = nil) {
    let queries = publication.queries
    let state = publication.snapshot.state
    self.init(
      reader: values?.reader(of: state) ?? state, revision: publication.snapshot.revision,
      result: { queries.result(of: $0) })
  }

  /// Creates the state right after a revision, with the values of the observations that report old values. Nil if the
  /// history does not reach back that far, or if evaluating the values takes more steps than writers can wait for.
  init?(
    after revision: Revision, observedBy observations: some Sequence<Observation>, _ publication: borrowing Publication
  ) {
    guard let past = publication.past(after: revision) else { return nil }
    var values = ObservedValues(steps: ObservedValues.stepsUnderLock)
    do throws(ModelError) {
      try values.evaluate(observations.filter { $0.options.contains(.old) }, in: past, at: revision)
    } catch {
      return nil
    }
    let queries = publication.queries
    self.init(
      reader: values.reader(of: past), revision: revision, result: { queries.result(of: $0, before: revision + 1) })
  }

  /// Creates a past state.
  init(reader: any ObjectReader, revision: Revision, result: @escaping (Query) -> QueryResult?) {
    self.reader = reader
    self.revision = revision
    self.result = result
  }
}

/// The contents of a live query that a stream or a cell has missed, stored as the rows that its client has, independent
/// of their later changes.
struct MissedContents {
  /// The rows that the client has.
  let shown: QueryResult
  /// The revision of these rows.
  let since: Revision
  /// The number of missed contents.
  var count = 0
  /// True if the query was replaced since, even if by the same query in the end. Contents of another query in between
  /// are not counted.
  var isRequeried = false
  /// True if the rows that the client has are no longer known, so that it receives all rows.
  var isUnknown = false

  /// True if nothing was missed.
  var isNothing: Bool { count == 0 && !isRequeried }

  /// The maximum number of rows of a difference. A larger one is replaced by the whole result if that is shorter.
  private static let largestDifference = 10_000

  /// Returns one content that leads from the client's rows to `result` in `state`. Nil if nothing was missed, or if the
  /// rows are again those of the client. Returns all rows if the content would have very many and these are fewer.
  func notification(
    cell: String?, context: String?, to result: QueryResult, in state: any ObjectReader, at revision: Revision,
    _ encoder: EventEncoder
  ) -> QueryNotification? {
    if isUnknown {
      return QueryNotification(cell: cell, context: context, body: .results(result, state, isInitial: true))
    }
    guard !isNothing else { return nil }
    let content = QueryContent(from: shown, at: since, to: result, in: state, at: revision)
    if content.isEmpty, result.query == shown.query { return nil }
    let isWhole = content.changes.count > max(result.count, Self.largestDifference)
    return QueryNotification(
      cell: cell, context: context,
      body: isWhole ? .results(result, state, isInitial: false) : .content(encoder.encoded(content)),
      coalesced: max(1, count))
  }
}
