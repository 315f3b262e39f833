package import HTTPTypes

/// What the program does with requests.
package protocol RequestHandler: Sendable {
  /// Answers a request. Called once for every request that arrived whole, on one of the server's threads and on several
  /// of them at once; while it works, the other connections of that thread wait.
  func handle(_ request: borrowing Request) -> HandlerResponse

  /// The response to a request that never becomes one for `handle`, or that comes away from there without its answer.
  /// On any thread; the same patience.
  func response(to fault: RequestFault) -> Response

  /// Puts into a response what only its request can say: called once for each that is sent, `handle`'s and those to
  /// faults, right before; on any thread; the same patience. The header has the id already. `origin` gives the page
  /// that sends the request (`Origin`, Fetch standard), as far as the request was read; each call looks for it anew.
  func finish(_ response: inout Response, of request: RequestID, from origin: () -> String?)
}

/// What a handler makes of a request.
package enum HandlerResponse: Sendable {
  /// The response, now.
  case response(Response)
  /// The response, or the stream, later. The closure is called once, on the thread of the request and after the
  /// connection has been suspended; it, or what it started, answers the completion from any thread. It must not wait.
  case deferred(@Sendable (Completion) -> Void)
  /// Status 200 with these fields, and then the events of a stream that the server's hub opened. To a HEAD request
  /// only the fields are sent, and the stream is abandoned.
  case stream(EventStream, fields: HTTPFields)
}

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

/// What is wrong with a request that is not HTTP/1.1 as RFC 9112 has it. A proxy in front may read each of these in
/// another way than a server behind it, which is how requests are smuggled; so none is guessed at.
package enum RequestDefect: Error, Equatable, CaseIterable, CustomStringConvertible {
  /// The first line is not a method, a target and a version with one space between them.
  case requestLine
  /// The method is not a token.
  case method
  /// The target is none of `/path`, `*` with OPTIONS, and `http://name/path`, or has characters that no target has.
  case target
  /// A line does not end with a carriage return and a line feed, or has one of them inside.
  case lineEnd
  /// The name of a field is empty, or no token, or white space or nothing follows it in place of the colon.
  case fieldName
  /// The value of a field has control characters.
  case fieldValue
  /// A line begins with white space, to go on with the line before it.
  case foldedLine
  /// HTTP/1.1 without `Host`.
  case missingHost
  /// `Host` came twice.
  case repeatedHost
  /// The value of `Host` is neither a name nor an address.
  case host
  /// `Content-Length` is not digits alone.
  case contentLength
  /// `Content-Length` came twice.
  case repeatedContentLength
  /// Both `Content-Length` and `Transfer-Encoding`.
  case bothLengths
  /// `Transfer-Encoding` in HTTP/1.0, which has none.
  case transferCodingInHTTP10
  /// The size of a chunk is not hexadecimal digits alone, or more than any chunk has.
  case chunkSize
  /// A chunk is not followed by the end of a line.
  case chunkEnd

  /// For the client.
  package var description: String {
    switch self {
    case .requestLine: "the first line is a method, a target and a version, with one space between them"
    case .method: "the method is no token"
    case .target: "the request target is malformed"
    case .lineEnd: "a line of the head does not end with CR LF, or has one of them inside"
    case .fieldName: "the name of a header field is no token with a colon right behind it"
    case .fieldValue: "the value of a header field has a control character"
    case .foldedLine: "a header line begins with white space"
    case .missingHost: "there is no Host"
    case .repeatedHost: "there is more than one Host"
    case .host: "the Host is neither a name nor an address"
    case .contentLength: "Content-Length is not digits alone"
    case .repeatedContentLength: "there is more than one Content-Length"
    case .bothLengths: "the length of the body is ambiguous: either Content-Length or chunks"
    case .transferCodingInHTTP10: "HTTP/1.0 has no Transfer-Encoding"
    case .chunkSize: "the size of a chunk is not up to 15 hexadecimal digits"
    case .chunkEnd: "a chunk does not end with CR LF"
    }
  }
}
