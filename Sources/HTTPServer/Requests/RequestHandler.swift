/// The program's handling of requests.
package protocol RequestHandler: Sendable {
  /// Answers a request. Called once for every complete request, on one of the server's threads and on several of them
  /// concurrently; while it works, the other connections of that thread wait.
  func handle(_ request: borrowing Request) -> HandlerResponse

  /// Returns the response to a request that never reaches `handle`, or that `handle` leaves without a response. Called
  /// on any thread; like `handle`, it must not take long.
  func response(to fault: RequestFault) -> Response

  /// Adds the parts of a response that depend on its request. Called once for each response that is sent, those of
  /// `handle` and those to faults, immediately before sending; on any thread; like `handle`, it must not take long. The
  /// header already has the ID. `origin` returns the page that sends the request (`Origin`, Fetch standard), as far as
  /// the request was read; each call searches for it anew.
  func finish(_ response: inout Response, of request: RequestID, from origin: () -> String?)
}

/// The handler's answer to a request.
package enum HandlerResponse: Sendable {
  /// The response, immediately.
  case response(Response)
  /// The response, or the stream, later. The closure is called once, on the thread of the request and after the
  /// connection has been suspended; it, or work that it started, answers the completion from any thread. It must not
  /// wait.
  case deferred(@Sendable (Completion) -> Void)
  /// Status 200 with these fields, and then the events of a stream that the server's hub opened. For a HEAD request
  /// only the fields are sent, and the stream is abandoned.
  case stream(EventStream, fields: FieldSection)
}

/// The reason why a request gets a response other than the handler's: a fault of the request or of the server.
package enum RequestFault: Sendable, Equatable {
  /// The request is not valid HTTP according to RFC 9112.
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
  /// The client, or all clients together, hold as much memory as they may: the body was not accepted, or the response
  /// to a read was not made.
  case memoryRefused(MemoryRefusal)
  /// The handler answered with an event stream, but the process has no descriptor left for it.
  case overloaded
  /// The server is stopping, and the deferred response has not arrived. Its request may have been carried out.
  case draining
  /// The response was deferred, and nothing that could deliver it is left.
  case unanswered

  /// True if a request that is refused for this reason has a body that was not read.
  var leavesBodyUnread: Bool {
    switch self {
    case .bodyTooLarge, .memoryRefused: true
    default: false
    }
  }
}

/// A defect of a request that is not valid HTTP/1.1 according to RFC 9112. A proxy may interpret each of these
/// differently from the server behind it, which is how requests are smuggled; therefore none is tolerated.
package enum RequestDefect: Error, Equatable, CaseIterable, CustomStringConvertible {
  /// The first line is not a method, a target and a version with one space between them.
  case requestLine
  /// The method is not a token.
  case method
  /// The target is not of the form `/path`, `*` with OPTIONS, or `http://name/path`, or has invalid characters.
  case target
  /// A line does not end with a carriage return and a line feed, or has one of them inside.
  case lineEnd
  /// The name of a field is empty or not a token, or is not immediately followed by the colon.
  case fieldName
  /// The value of a field has control characters.
  case fieldValue
  /// A line begins with white space, to continue the line before it.
  case foldedLine
  /// HTTP/1.1 without `Host`.
  case missingHost
  /// `Host` occurs twice.
  case repeatedHost
  /// The value of `Host` is neither a name nor an address.
  case host
  /// `Content-Length` does not consist of digits only.
  case contentLength
  /// `Content-Length` occurs twice.
  case repeatedContentLength
  /// Both `Content-Length` and `Transfer-Encoding`.
  case bothLengths
  /// `Transfer-Encoding` in HTTP/1.0, which does not support it.
  case transferCodingInHTTP10
  /// The size of a chunk does not consist of hexadecimal digits only, or is too large.
  case chunkSize
  /// A chunk is not followed by the end of a line.
  case chunkEnd

  /// The defect as text, for the client.
  package var description: String {
    switch self {
    case .requestLine: "the first line is not a method, a target and a version with one space between them"
    case .method: "the method is not a token"
    case .target: "the request target is malformed"
    case .lineEnd: "a line of the head does not end with CR LF, or contains a CR or LF elsewhere"
    case .fieldName: "the name of a header field is not a token with a colon immediately after it"
    case .fieldValue: "the value of a header field has a control character"
    case .foldedLine: "a header line begins with white space"
    case .missingHost: "the Host header field is missing"
    case .repeatedHost: "there is more than one Host"
    case .host: "the Host is neither a name nor an address"
    case .contentLength: "Content-Length does not consist of digits only"
    case .repeatedContentLength: "there is more than one Content-Length"
    case .bothLengths: "the length of the body is ambiguous: use either Content-Length or chunks"
    case .transferCodingInHTTP10: "HTTP/1.0 does not support Transfer-Encoding"
    case .chunkSize: "the size of a chunk is not 1 to 15 hexadecimal digits"
    case .chunkEnd: "a chunk does not end with CR LF"
    }
  }
}
