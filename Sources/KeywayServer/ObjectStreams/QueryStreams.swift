package import HTTPServer
import HTTPTypes
package import KeyValueModel
package import Store

/// Opens streams of live queries.
package struct QueryStreams: Sendable {
  private let registry: StreamRegistry

  /// Creates the streams of a registry.
  package init(_ registry: StreamRegistry) { self.registry = registry }

  /// Opens a stream. Throws `too-many-queries`, `too-many-streams`, and `malformed-filter` for a filter that costs too
  /// much, before anything is registered. Blocks while the query is evaluated.
  package func open(
    _ request: QueryStreamRequest, in store: Store, _ isAbandoned: () -> Bool = { false }
  ) throws(Problem) -> EventStream {
    try registry.open(QueryStreamOpening(request, in: store, registry.services, isAbandoned), in: store, isAbandoned)
  }
}

/// A request for a stream with `GET /v1/objects/{Entity}`.
package struct QueryStreamRequest: Sendable {
  /// The query.
  package let query: Query
  /// The text of the client that every event repeats.
  package let context: EchoedText?
  /// The cursor to resume from, as received.
  package let cursor: String?
  /// The policy for a slow reader.
  package let overflow: OverflowPolicy
  /// The address of the client.
  package let client: ClientAddress

  /// Creates a request.
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

/// `GET /v1/objects/{Entity}` for a client that accepts an event stream: a live query.
struct QueryStreamHandler: Sendable {
  let store: Store
  let streams: QueryStreams
  /// The queue of live queries that wait to be evaluated.
  let openings: OpeningQueue

  /// Opens the stream. The response to `HEAD` has the header fields only.
  func open(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    let target = context.target
    try context.checkParameters()
    var words = Query.Words(entity: context[.entity])
    words.filter = target["filter"]
    words.sort = target["sort"]
    words.section = target["section"]
    words.keys = target.list("keys")
    words.aggregate = target["aggregate"]
    words.limit = try target.limit(in: 0...Int.max)
    let query = try Problem.translating(try Query(words, in: store.schema, for: context.viewer))
    let asked = QueryStreamRequest(
      query: query, context: try target.context(), cursor: target.cursor(of: request),
      overflow: try target.overflow(), client: request.client)
    if request.method == .head { return .response(Response(streamHead: .eventStream)) }
    return openings.response(to: request.client) { [streams, store] isAbandoned throws(Problem) in
      try streams.open(asked, in: store, isAbandoned)
    }
  }
}
