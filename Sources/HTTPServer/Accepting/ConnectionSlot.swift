/// The place that one TCP connection takes among those allowed. It goes from libmicrohttpd's connection to the event
/// stream it becomes, and is free again when the last of them lets go.
final class ConnectionSlot: Sendable {
  private let limiter: ConnectionLimiter
  /// The other side of the connection.
  let address: ClientAddress
  /// The client that the connection counts for.
  let client: ClientAddress
  /// A number that stands for the client.
  let clientNumber: Int
  /// The bytes that all connections of the client move.
  let traffic: TrafficShare
  /// The time of the connection threads that they take.
  let time: TrafficShare

  init(
    limiter: ConnectionLimiter, address: ClientAddress, client: ClientAddress, traffic: TrafficShare,
    time: TrafficShare
  ) {
    self.limiter = limiter
    self.address = address
    self.client = client
    clientNumber = client.hashValue
    self.traffic = traffic
    self.time = time
  }

  deinit {
    limiter.leave(client)
  }
}
