/// What the end of one attempt at a stream means, by the rules of EventSource and the protocol.
package enum EventStreamOutcome: Hashable, Sendable {
  /// The stream is over: the server wants nobody back.
  case ended
  /// Coming back would not help.
  case refused
  /// Come back, at the earliest after the server's `Retry-After`.
  case comeBack(retryAfterSeconds: Int?)

  /// By the status of an answer that is no stream: 204 ends it, 429 and 5xx are passing, all else is final.
  package init(_ response: ClientResponse) {
    switch response.status {
    case 204: self = .ended
    case 429, 500...599: self = .comeBack(retryAfterSeconds: response.header("Retry-After").flatMap { Int($0) })
    default: self = .refused
    }
  }
}
