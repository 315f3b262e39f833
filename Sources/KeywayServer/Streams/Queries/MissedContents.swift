import KeyValueModel
import KeyValueObserving

/// What a stream or a cell has missed of a live query: remembered as the rows that its client has, whatever becomes of
/// them.
struct MissedContents {
  /// The rows that the client has.
  let shown: QueryResult
  /// The revision of these rows.
  let since: Revision
  /// How many contents were missed.
  var count = 0
  /// Whether it is no longer known which rows the client has: it receives all.
  var isUnknown = false

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
    guard count > 0 || result.query != shown.query else { return nil }
    let content = QueryContent(from: shown, at: since, to: result, in: state, at: revision)
    if content.isEmpty, result.query == shown.query { return nil }
    let isWhole = content.changes.count > max(result.count, Self.largestDifference)
    return QueryNotification(
      cell: cell, context: context,
      body: isWhole ? .results(result, state, isInitial: false) : .content(encoder.encoded(content)),
      coalesced: max(1, count))
  }
}
