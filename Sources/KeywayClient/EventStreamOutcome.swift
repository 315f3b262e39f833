/// What the end of one attempt at a stream means, by the rules of EventSource and the protocol.
package enum EventStreamOutcome: Hashable, Sendable {
  /// The stream is over: the server asks its clients not to reconnect.
  case ended
  /// Reconnecting would not help.
  case refused
  /// Reconnect, at the earliest after the server's `Retry-After`, in seconds.
  case reconnect(retryAfterSeconds: Int?)

  /// By the status of a response that is no stream: 204 ends it, 429 and 5xx are passing, all else is final.
  package init(_ response: ClientResponse) {
    switch response.status {
    case 204: self = .ended
    case 429, 500...599: self = .reconnect(retryAfterSeconds: response.header("Retry-After").flatMap { Int($0) })
    default: self = .refused
    }
  }
}
