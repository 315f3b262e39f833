import KeywayClient

/// How `keyway watch` shows its events.
protocol WatchDisplay: Sendable {
  /// Shows the next event. Throws what ends the command.
  func show(_ event: ServerSentEvent) throws
  /// Shows what happened to the connection; called from any thread.
  func note(_ notice: EventStreamNotice)
  /// Shows the same once more: the terminal has another size. Called from any thread.
  func redraw()
  /// Leaves the terminal as it was found; the last call.
  func end()
}

extension WatchDisplay {
  func redraw() {}
  func end() {}
}
