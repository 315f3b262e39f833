/// Why a request gets no answer that the handler made of it: something is wrong with it, or with the server.
package enum RequestFault: Sendable, Equatable {
  /// It is not HTTP as RFC 9112 has it.
  case malformed(RequestDefect)
  /// The version is neither HTTP/1.0 nor HTTP/1.1.
  case unsupportedVersion
  /// The body has a transfer coding that is not `chunked`.
  case unsupportedTransferCoding
  /// The body has a content coding.
  case encodedBody
  /// The body is longer than `limit` bytes, by its declared or by its counted length.
  case bodyTooLarge(limit: Int)
  /// The request line alone is longer than `limit` bytes.
  case targetTooLong(limit: Int)
  /// The header lines leave no room for the head of a response in the connection's `limit` bytes of memory.
  case headersTooLarge(limit: Int)
  /// The client, or all clients together, hold as much memory as they may: neither a body was taken nor, for a reader,
  /// the answer made.
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
