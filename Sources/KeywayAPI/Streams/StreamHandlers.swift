import HTTPServer
import HTTPTypes

/// Listing, inspecting and ending open streams of every kind.
struct StreamHandlers: Sendable {
  let streams: StreamRegistry

  /// `GET /v1/streams`.
  func list(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try context.target.allowOnly("since", "overflow")
    return .response(.json(streams.describeStreams()))
  }

  /// `GET /v1/streams/{stream}`.
  func get(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try context.target.allowOnly()
    return .response(.json(try streams.describeStream(context[.stream])))
  }

  /// `DELETE /v1/streams/{stream}`.
  func delete(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try context.target.allowOnly()
    try streams.endStream(context[.stream])
    return .response(Response(status: .noContent))
  }
}
