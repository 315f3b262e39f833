/// How a stream came to its end.
package enum StreamEnd: String, Sendable {
  /// The client closed its side, or its network went away, or it never took the stream.
  case clientGone
  /// More waited for the reader than a stream may hold, and it was opened with `OverflowPolicy.disconnect`;
  /// or there was no memory for what it missed.
  case overflow
  /// The owner ended it.
  case ended
  /// It was open for as long as a stream may be.
  case lifetime
  /// The hub was drained or stopped.
  case shutdown
  /// The reader took nothing for too long.
  case stalled
}
