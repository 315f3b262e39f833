import HTTPServer
import HTTPTypes

extension HTTPFields {
  /// The head of every stream. Nothing on the way may keep or change it.
  static let eventStream: HTTPFields = [
    .contentType: "text/event-stream; charset=utf-8",
    .cacheControl: "no-store, no-transform",
    .accelBuffering: "no",
  ]
}

/// What requests for streams have in common.
extension Target {
  /// What becomes of a stream whose subscriber is slow: `?overflow=coalesce`, the default, or `disconnect`.
  func overflow() throws(Problem) -> OverflowPolicy {
    switch self["overflow"] {
    case nil, "coalesce": return .coalesce
    case "disconnect": return .disconnect
    default: throw Problem(.malformedQuery, "overflow is coalesce or disconnect")
    }
  }

  /// The cursor that a stream goes on from: `Last-Event-ID`, or `?lastEventId=`, which EventSource polyfills send, or
  /// `?since=`. The last event's id wins, since a client that reconnects by itself keeps the rest of the URL.
  func cursor(of request: borrowing Request) -> String? {
    // An EventSource that has no id yet sends none; an empty one means the same.
    for id in [request.header(.lastEventID), self["lastEventId"]] { if let id, !id.isEmpty { return id } }
    return self["since"]
  }

  /// What is given back with every event. Throws `malformed-query` where it is too long.
  func context() throws(Problem) -> EchoedText? {
    guard let text = self["context"] else { return nil }
    return try EchoedText(text, mistake: .malformedQuery)
  }
}
