import KeyValueObserving

/// What became of a live query's rows, encoded: all of a `content` event but its head, which differs between watchers.
struct EncodedContent {
  /// What became of the rows.
  let content: QueryContent
  /// From `,"count":` on, without the brace that ends the event.
  let text: EventText
}
