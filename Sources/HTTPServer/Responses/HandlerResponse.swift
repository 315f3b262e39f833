package import HTTPTypes

/// What a handler makes of a request.
package enum HandlerResponse: Sendable {
  /// The response, now.
  case response(Response)
  /// The response, or the stream, later. The closure is called once, on the thread of the request and after the
  /// connection has been suspended; it, or what it started, answers the completion from any thread. It must not wait.
  case deferred(@Sendable (Completion) -> Void)
  /// None yet: the same request, with its body, is handed to the handler once more when the postponement ends. The
  /// closure is called like that of a deferred response.
  case postponed(@Sendable (Postponement) -> Void)
  /// Status 200 with these fields, and then the events of a stream that the server's hub opened. To a HEAD request
  /// only the fields are sent, and the stream is abandoned.
  case stream(EventStream, fields: HTTPFields)
}
