package import HTTPServer
import HTTPTypes
import Store

/// Lists, describes and ends open streams of every kind.
struct StreamHandlers: Sendable {
  let store: Store
  let node: any Node
  let streams: StreamRegistry
  let readings: Readings

  /// `GET /v1/streams`.
  func list(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try context.checkParameters()
    // Admins see all streams, others their own. A client without a token has none that are known to be its own.
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

extension FieldSection {
  /// The header fields of every stream. No proxy may cache, transform or buffer it.
  package static let eventStream: FieldSection = [
    .contentType: "text/event-stream; charset=utf-8",
    .cacheControl: "no-store, no-transform",
    .accelBuffering: "no",
  ]
}

/// The parameters that requests for streams share.
extension Target {
  /// Returns the policy for a slow subscriber: `?overflow=coalesce`, the default, or `disconnect`.
  func overflow() throws(Problem) -> OverflowPolicy {
    switch self["overflow"] {
    case nil, "coalesce": return .coalesce
    case "disconnect": return .disconnect
    default: throw Problem(.malformedQuery, "overflow must be coalesce or disconnect")
    }
  }

  /// Returns the cursor that a stream resumes from: `Last-Event-ID`, or `?lastEventId=`, which EventSource polyfills
  /// send, or `?since=`. The last event's id takes precedence, since a client that reconnects by itself repeats the
  /// rest of the URL.
  package func cursor(of request: borrowing Request) -> String? {
    // An EventSource without an id sends none. An empty id has the same meaning.
    for id in [request.header(.lastEventID), self["lastEventId"]] { if let id, !id.isEmpty { return id } }
    return self["since"]
  }

  /// Returns the text that every event repeats, or nil. Throws `malformed-query` if it is too long.
  func context() throws(Problem) -> EchoedText? {
    guard let text = self["context"] else { return nil }
    return try EchoedText(text, mistake: .malformedQuery)
  }
}
