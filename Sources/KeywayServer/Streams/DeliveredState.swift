import KeyValueModel
import KeyValueObserving
import Store

/// The state that a stream or its cells have been sent: the objects as they were, and the rows of live queries.
struct DeliveredState {
  /// The objects.
  let reader: any ObjectReader
  /// The last revision that was sent.
  let revision: Revision
  /// The rows of a query, nil where they are not known any more.
  let result: (Query) -> QueryResult?

  /// The present, which a stream has that is sent everything; with the values of it that are known.
  init(present publication: borrowing Publication, _ values: ObservedValues? = nil) {
    let queries = publication.queries
    let state = publication.snapshot.state
    self.init(
      reader: values?.reader(of: state) ?? state, revision: publication.snapshot.revision,
      result: { queries.result(of: $0) })
  }

  /// The state right after a revision, with what observations saw that want to be told old values; nil if the history
  /// does not reach back so far, or if that takes more steps than writers can wait for.
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

  /// A state of the past.
  init(reader: any ObjectReader, revision: Revision, result: @escaping (Query) -> QueryResult?) {
    self.reader = reader
    self.revision = revision
    self.result = result
  }
}

/// What a stream or a cell has missed of a live query: remembered as the rows that its client has, whatever becomes of
/// them.
struct MissedContents {
  /// The rows that the client has.
  let shown: QueryResult
  /// The revision of these rows.
  let since: Revision
  /// How many contents were missed.
  var count = 0
  /// True if the query was changed since, perhaps back to what it was. What became of its rows while another one stood
  /// in its place is not among the contents that are counted.
  var isRequeried = false
  /// Whether it is no longer known which rows the client has: it receives all.
  var isUnknown = false

  /// True if there is nothing to tell.
  var isNothing: Bool { count == 0 && !isRequeried }

  /// A difference of more rows is not sent as one where the whole result is shorter.
  private static let largestDifference = 10_000

  /// One content from what the client has to what there is in `state`; nil where nothing was missed, or has come back
  /// to what the client has. All rows where the content would be of very many and these are fewer.
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
