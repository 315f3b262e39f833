/// What memory is held for on behalf of a client.
package enum MemoryUse: String, CaseIterable, Sendable {
  /// Request bodies that arrive, and wait to be carried out.
  case requestBodies = "request_bodies"
  /// Responses that are encoded, and wait for their client to read them.
  case responses
  /// Events that wait for a subscriber to read them.
  case pendingEvents = "pending_events"
  /// First events and missed events that are put together for a stream that opens.
  case replays
  /// What streams, their cells and contexts are.
  case streams
  /// Fetches that are kept for their next pages.
  case pages
  /// Requests with an `Idempotency-Key`, and their responses.
  case idempotency
}
