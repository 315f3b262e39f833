/// What happens to the connection under a stream, for a caller that shows it.
package enum EventStreamNotice: Hashable, Sendable {
  /// The server has accepted the stream.
  case opened
  /// The connection ended; the next attempt comes after the delay.
  case reconnecting(reason: String, delayMilliseconds: Int)
}
