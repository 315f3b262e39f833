/// The place that one TCP connection takes among those allowed. It goes from libmicrohttpd's connection to the event
/// stream it becomes, and is free again when the last of them lets go.
final class Admission: Sendable {
  private let census: ConnectionCensus
  private let address: ClientAddress

  init(census: ConnectionCensus, address: ClientAddress) {
    self.census = census
    self.address = address
  }

  deinit {
    census.leave(address)
  }
}
