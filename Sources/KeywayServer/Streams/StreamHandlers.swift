import HTTPServer
import HTTPTypes
import Store

/// Listing, inspecting and ending open streams of every kind.
struct StreamHandlers: Sendable {
  let store: Store
  let node: Node
  let streams: StreamRegistry
  let readings: Readings

  /// `GET /v1/streams`.
  func list(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try context.checkParameters()
    // Admins see all, others their own; who has no token has none that are known to be theirs.
    let requester = context.requester
    guard requester.isAdmin || requester.identity != nil else { throw AccessControl.unauthenticated }
    let subject = requester.isAdmin ? nil : requester.identity?.subject
    return try readings.response(to: request, isLong: true) { [streams] budget throws(Problem) in
      try .json(streams.describeStreams(of: subject), within: budget)
    }
  }

  /// `GET /v1/streams/{stream}`.
  func get(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try context.checkParameters()
    return try readings.response(to: request, isLong: true) {
      [streams, name = context[.stream]] budget throws(Problem) in
      try .json(try streams.describeStream(name), within: budget)
    }
  }

  /// `DELETE /v1/streams/{stream}`.
  func delete(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try context.checkParameters()
    try streams.endStream(context[.stream])
    node.endLeases(store, streams)
    return .response(Response(status: .noContent))
  }
}
