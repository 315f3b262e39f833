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

  /// Where a stream is to go on: `Last-Event-ID`, or `?since=`. The header wins, since a client that reconnects by
  /// itself can only set the header.
  func cursor(of request: borrowing Request) -> String? {
    // An EventSource that has no id yet sends none; an empty one means the same.
    request.header(.lastEventID).flatMap { $0.isEmpty ? nil : $0 } ?? self["since"]
  }

  /// What is given back with every event. Throws `malformed-query` where it is too long.
  func context() throws(Problem) -> EchoedText? {
    guard let text = self["context"] else { return nil }
    return try EchoedText(text, mistake: .malformedQuery)
  }
}
