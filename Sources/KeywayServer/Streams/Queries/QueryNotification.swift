import KeyValueModel
import KeyValueObserving

/// What a stream, or one of its cells, receives of a live query: a `results` or a `content` event.
struct QueryNotification {
  enum Body {
    /// All rows, as they are in a state.
    case results(QueryResult, any ObjectReader, isInitial: Bool)
    /// What became of them.
    case content(EncodedContent)
  }

  /// The cell, nil where the stream is of nothing else.
  let cell: String?
  /// What the client wants to be given back.
  let context: String?
  let body: Body
  /// How many contents were merged into it, where it stands for some.
  var coalesced: Int?
}
