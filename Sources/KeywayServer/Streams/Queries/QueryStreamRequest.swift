package import HTTPServer
package import KeyValueModel

/// What a client asks for with `GET /v1/objects/{Entity}` as a stream.
package struct QueryStreamRequest: Sendable {
  /// The query.
  package let query: Query
  /// Given back with every event.
  package let context: EchoedText?
  /// The cursor to go on from, as it came.
  package let cursor: String?
  /// What becomes of the stream when its reader is slow.
  package let overflow: OverflowPolicy
  /// Who asks.
  package let client: ClientAddress

  /// A request as it was read.
  package init(
    query: Query, context: EchoedText?, cursor: String?, overflow: OverflowPolicy, client: ClientAddress = .unknown
  ) {
    self.client = client
    self.query = query
    self.context = context
    self.cursor = cursor
    self.overflow = overflow
  }
}
