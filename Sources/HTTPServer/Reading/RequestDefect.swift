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
