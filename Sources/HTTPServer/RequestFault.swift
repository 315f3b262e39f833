/// Why a request gets no answer that the handler made of it: something is wrong with it, or with the server.
package enum RequestFault: Sendable, Equatable {
  /// The body is longer than `limit` bytes, by its declared or by its counted length.
  case bodyTooLarge(limit: Int)
  /// The request target has a space or a control character, or is not UTF-8.
  case malformedTarget
  /// The method is not a token.
  case malformedMethod
  /// The header lines leave no room for the head of a response in the connection's `limit` bytes of memory.
  case headersTooLarge(limit: Int)
  /// Two statements about the length of the body, or one that is not a number: a proxy in front may have read another.
  case ambiguousLength
  /// The client, or all clients together, hold as much memory as they may; the body was not taken.
  case memoryRefused(MemoryRefusal)
  /// The handler answered with an event stream, and the process has no descriptor left for it.
  case overloaded
  /// The server stops, and the answer that was deferred has not come. Its request may have been carried out.
  case draining
  /// The response was deferred, and nothing is left that could give it.
  case unanswered

  /// Whether a request that is refused so has a body that nothing has read.
  var leavesBodyUnread: Bool {
    switch self {
    case .bodyTooLarge, .memoryRefused: true
    default: false
    }
  }
}
