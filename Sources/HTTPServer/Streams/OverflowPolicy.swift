/// What becomes of a stream for which more waits than `ServerLimits.pendingBytesPerStream`.
package enum OverflowPolicy: Sendable {
  /// It stays open and turns to lagging: what is queued is sent, later events are dropped, and once all is sent the
  /// owner gives one catch-up in their place; see `StreamHubDelegate.streamLagged(_:firstMissed:)`.
  case coalesce
  /// What was not sent is dropped, and the stream ends as `StreamEnd.overflow` with a closing event.
  case disconnect
}
