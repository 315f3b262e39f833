/// The place that one TCP connection takes among those allowed. It goes from libmicrohttpd's connection to the event
/// stream it becomes, and is free again when the last of them lets go.
final class ConnectionSlot: Sendable {
  private let limiter: ConnectionLimiter
  let address: ClientAddress
  /// A number that stands for the address.
  let addressNumber: Int
  /// What all connections of the address move.
  let traffic: TrafficShare
  /// How much time of the connection threads they take.
  let time: TrafficShare

  init(limiter: ConnectionLimiter, address: ClientAddress, traffic: TrafficShare, time: TrafficShare) {
    self.limiter = limiter
    self.address = address
    addressNumber = address.hashValue
    self.traffic = traffic
    self.time = time
  }

  deinit {
    limiter.leave(address)
  }
}
