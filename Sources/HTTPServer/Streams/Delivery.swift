/// One thing posted to a hub.
package enum Delivery: Sendable {
  /// Events for every stream that is in the channel by now.
  case channel(ChannelID, EventBytes)
  /// Events for one stream.
  case stream(StreamID, EventBytes)
  /// The end, as `StreamEnd.ended`, of every stream that is in the channel by now, after one more event if given.
  case endChannel(ChannelID, EventBytes?)
  /// The end of one stream, likewise.
  case endStream(StreamID, EventBytes?)
  /// The end of one stream, likewise, but at once: what it has still to send is lost.
  case cutStream(StreamID)
  /// The answer to `StreamHubDelegate.streamCaughtUp(_:)`: bytes that stand for what a lagging stream has missed,
  /// queued whatever their length, where there is memory for them; otherwise it ends. After the last answer the stream
  /// gets what is posted later; before it, and while `isLast` is false, it gets nothing else, and once these bytes are
  /// sent its owner is asked again. Ignored for a stream that is not lagging.
  case catchUp(StreamID, EventBytes?, isLast: Bool)

  /// A stream, or every stream that is in a channel by now, misses the event of a position, because that is too long to
  /// be made: it begins to lag there, or ends, as if too much waited for it.
  case streamMisses(StreamID, position: UInt64)
  case channelMisses(ChannelID, position: UInt64)

  var byteCount: Int {
    switch self {
    case .channel(_, let event), .stream(_, let event): event.framedCount
    case .streamMisses, .channelMisses, .cutStream: 0
    case .endChannel(_, let event), .endStream(_, let event), .catchUp(_, let event, _): event?.framedCount ?? 0
    }
  }
}
