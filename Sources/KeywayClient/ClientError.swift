/// What can go wrong between client and server, besides a response that is a problem.
package enum ClientError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The server's address is no `http` or `https` URL with a host.
  case invalidServer(String)
  /// A path cannot be made into a URL.
  case invalidPath(String)
  /// The value of a header field has a character that none can have (RFC 9110 §5.5).
  case invalidHeader(String)
  /// No response: the connection was refused, lost or too slow.
  case unreachable(server: String, reason: String)
  /// The response to a request for a stream is something else.
  case notAnEventStream(path: String, contentType: String)
  /// One event is larger than the client holds in memory.
  case eventTooLarge(limitBytes: Int)

  /// The error as a sentence for a terminal.
  package var description: String {
    switch self {
    case .invalidServer(let text): "\(text) is not the address of a server; write it like http://127.0.0.1:8080"
    case .invalidPath(let path): "\(path) is not a path of the server"
    case .invalidHeader(let name): "the value of \(name) has a line end or another control character"
    case .unreachable(let server, let reason): "no answer from \(server): \(reason)"
    case .notAnEventStream(let path, let contentType): "\(path) is not an event stream but \(contentType)"
    case .eventTooLarge(let limit): "an event is larger than \(limit) bytes"
    }
  }
}
