/// What a hub thread is told, in order.
enum HubCommand: Sendable {
  case open(HubOpening)
  case attach(StreamID, SocketHandoff)
  case abandon(StreamID)
  case deliver(Delivery)
  /// Events for these were lost, because the thread is too far behind; the first of them at the position.
  case overflow(HubTarget, firstLost: UInt64)
  case position(UInt64)
  case drain
  /// Streams that have not ended are closed as they are.
  case cut
  case stop
}
