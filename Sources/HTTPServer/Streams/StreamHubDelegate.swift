/// What a hub asks of its owner, and tells it. Every call comes on a hub thread, without a lock held: it may post, but
/// should not take long, because all streams of that thread wait.
package protocol StreamHubDelegate: Sendable {
  /// The event for streams that have been silent, naming the last position posted before it, or the last of its channel
  /// where that counts for itself. Asked at most once a second for each position and thread.
  func heartbeat(at position: UInt64) -> EventBytes

  /// The last event of a stream that ends for `overflow`, `lifetime` or `shutdown`; no other reason is asked about.
  func closingEvent(_ reason: StreamEnd) -> EventBytes

  /// Tells that a stream opened with `OverflowPolicy.coalesce` misses events from now on: the event at the position is
  /// the first that it does not get, and it gets none of the later ones, of its channel or its own, until its owner has
  /// answered `streamCaughtUp(_:)`. What is queued is still sent. Told once each time it begins to lag, and before
  /// `StreamHub.settledPosition` comes to the position. Not told of a stream that is ending.
  func streamLagged(_ id: StreamID, firstMissed position: UInt64)

  /// Asks for what a lagging stream has missed, because everything that was queued for it has been sent. To be answered
  /// by posting `Delivery.catchUp`, now or later; asked again after each answer that is not the last. A stream that
  /// ends meanwhile needs no answer.
  func streamCaughtUp(_ id: StreamID)

  /// Tells the end of a stream, exactly once for each that was opened, once its socket is closed. `isDelivered` says
  /// that the other side has acknowledged everything that was posted, and did not close before it had read that.
  func streamEnded(_ id: StreamID, _ end: StreamEnd, isDelivered: Bool)
}
