internal import KeyValueModel
internal import KeyValueObserving

/// What a stream, or one of its cells, is told of a live query.
struct QueryNews {
  /// The sort.
  enum Sort {
    /// All rows, as they are in a state.
    case results(QueryResult, any ObjectReader, isInitial: Bool)
    /// What became of them.
    case content(EncodedContent)
  }

  /// The cell, nil where the stream is of nothing else.
  let cell: String?
  /// What the client gave to be given back.
  let context: String?
  /// What is told.
  let sort: Sort
  /// How many contents were merged into it, where it stands for some.
  var coalesced: Int?
}
