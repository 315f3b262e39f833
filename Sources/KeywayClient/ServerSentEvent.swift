/// One event of an event stream, as the HTML standard dispatches it.
package struct ServerSentEvent: Hashable, Sendable {
  /// The last event id: it persists, so an event without one of its own carries the id of the one before. Empty until
  /// the first.
  package var id: String
  /// The type; `message` where the block names none.
  package var event: String
  /// The data lines, joined by line feeds.
  package var data: String
  /// The reconnection time that stood in the event's own block, in milliseconds.
  package var retryMilliseconds: Int?

  /// An event with these parts.
  package init(id: String, event: String, data: String, retryMilliseconds: Int? = nil) {
    self.id = id
    self.event = event
    self.data = data
    self.retryMilliseconds = retryMilliseconds
  }
}
