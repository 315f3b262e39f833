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

  var byteCount: Int {
    switch self {
    case .channel(_, let event), .stream(_, let event): event.framed.count
    case .endChannel(_, let event), .endStream(_, let event): event?.framed.count ?? 0
    }
  }
}
