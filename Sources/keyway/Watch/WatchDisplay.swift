internal import KeywayClient

/// How `keyway watch` shows what it is told.
protocol WatchDisplay: Sendable {
  /// Shows the next event. Throws what makes going on senseless.
  func show(_ event: ServerSentEvent) throws
  /// Shows what happened to the connection; called from any thread.
  func note(_ notice: EventStreamNotice)
  /// Shows the same once more: the terminal has another size. Called from any thread.
  func redraw()
  /// Leaves the terminal as it was found; the last call.
  func end()
}
