/// Hands the requests in the body of another one, the carrier, to the server's handler.
///
/// Nothing is believed of them because they came so. Where each is from is what its own `X-Forwarded-For` says, if
/// the sender of the carrier is a trusted proxy, and otherwise that sender. The sender is whom the carrier itself is
/// from: a client whose carrier came through a proxy is no proxy, whatever stands inside.
package struct RequestCarrier: Sendable {
  private let id: RequestID
  private let sender: ClientAddress
  private let destination: ClientAddress?
  private let server: ServerContext

  init(id: RequestID, sender: ClientAddress, destination: ClientAddress?, server: ServerContext) {
    (self.id, self.sender, self.destination, self.server) = (id, sender, destination, server)
  }

  /// Has the handler answer a request, which has a number in the carrier: `answer` gets the response once, on any
  /// thread, perhaps before this returns. Its body's memory is that of the request's client as long as the response is
  /// kept. `isAbandoned` says whether nobody waits for the carrier's answer any more. To be called on a thread that may
  /// handle requests.
  package func handle(
    _ message: CarriedMessage, number: Int, isAbandoned: @escaping @Sendable () -> Bool,
    answer: @escaping @Sendable (Response) -> Void
  ) {
    let carried = CarriedRequest(
      message, id: message.requestID ?? RequestID(carriedBy: id, number: number), sender: sender,
      destination: destination, server: server, isAbandoned: isAbandoned, answer: answer)
    carried.handle()
  }
}
