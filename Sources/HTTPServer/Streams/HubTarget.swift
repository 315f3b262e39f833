/// The streams that a delivery is for.
enum HubTarget: Hashable, Sendable {
  case channel(ChannelID)
  case stream(StreamID)

  init(_ delivery: Delivery) {
    switch delivery {
    case .channel(let id, _), .endChannel(let id, _), .channelMisses(let id, _): self = .channel(id)
    case .stream(let id, _), .endStream(let id, _), .cutStream(let id), .catchUp(let id, _, _),
      .streamMisses(let id, _):
      self = .stream(id)
    }
  }
}
