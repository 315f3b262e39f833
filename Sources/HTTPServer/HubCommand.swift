/// What a hub thread is told, in order.
enum HubCommand: Sendable {
  case open(StreamID, prelude: EventBytes, channel: ChannelID?)
  case takeOver(StreamID, Takeover)
  case abandon(StreamID)
  case deliver(Delivery)
  /// Events for these were lost, because the thread is too far behind.
  case overflow(HubTarget)
  case position(UInt64)
  case drain
  /// Streams that have not ended are closed as they are.
  case cut
  case stop
}
