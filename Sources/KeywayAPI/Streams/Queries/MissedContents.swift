internal import KeyValueModel
internal import KeyValueObserving

/// What somebody has not been told of a live query: remembered as the rows that he has, whatever becomes of them.
struct MissedContents {
  /// The rows that he has.
  let shown: QueryResult
  /// The revision of these rows.
  let since: Revision
  /// How many contents he has missed.
  var count = 0
  /// Whether nobody knows any more which rows he has: he is told all.
  var isUnknown = false

  /// Differences of fewer rows than this are told as such even where the whole is shorter.
  private static let wholeThreshold = 100

  /// One content from what he has to what there is in `state`, or all rows where these are far fewer; nil
  /// where there is nothing to tell.
  func news(
    cell: String?, context: String?, to result: QueryResult, in state: any ObjectReader, at revision: Revision,
    _ encoder: EventEncoder
  ) -> QueryNews? {
    if isUnknown {
      return QueryNews(cell: cell, context: context, sort: .results(result, state, isInitial: true))
    }
    guard count > 0 || result.query != shown.query else { return nil }
    let content = QueryContent(from: shown, at: since, to: result, in: state, at: revision)
    let isWhole = content.changes.count > max(result.count, Self.wholeThreshold)
    return QueryNews(
      cell: cell, context: context,
      sort: isWhole ? .results(result, state, isInitial: false) : .content(encoder.encoded(content)),
      coalesced: max(1, count))
  }
}
