/// The place that one TCP connection takes among those allowed. It goes from libmicrohttpd's connection to the event
/// stream it becomes, and is free again when the last of them lets go.
final class ConnectionSlot: Sendable {
  private let limiter: ConnectionLimiter
  let address: ClientAddress

  init(limiter: ConnectionLimiter, address: ClientAddress) {
    self.limiter = limiter
    self.address = address
  }

  deinit {
    limiter.leave(address)
  }
}
