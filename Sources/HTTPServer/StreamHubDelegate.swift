/// What a hub asks of its owner, and tells it. Every call comes on a hub thread, without a lock held: it may post, but
/// should not take long, because all streams of that thread wait.
package protocol StreamHubDelegate: Sendable {
  /// The event for streams that have been silent, naming the last position posted before it. Asked at most once a
  /// second and thread.
  func heartbeat(at position: UInt64) -> EventBytes

  /// The last event of a stream that ends for `overflow`, `lifetime` or `shutdown`; no other reason is asked about.
  func farewell(_ reason: StreamEnd) -> EventBytes

  /// Tells the end of a stream, exactly once for each that was opened, once its socket is closed.
  func streamEnded(_ id: StreamID, _ end: StreamEnd)
}
