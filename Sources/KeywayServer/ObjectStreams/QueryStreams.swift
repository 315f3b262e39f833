package import HTTPServer
import HTTPTypes
package import KeyValueModel
package import Store

/// Opens streams of live queries.
package struct QueryStreams: Sendable {
  private let registry: StreamRegistry

  /// Streams of a registry.
  package init(_ registry: StreamRegistry) { self.registry = registry }

  /// Opens a stream. Throws `too-many-queries`, `too-many-streams`, and `malformed-filter` for a filter that costs too
  /// much, before anything is registered. Takes as long as it takes to evaluate the query.
  package func open(
    _ request: QueryStreamRequest, in store: Store, _ isAbandoned: () -> Bool = { false }
  ) throws(Problem) -> EventStream {
    try registry.open(QueryStreamOpening(request, in: store, registry.services, isAbandoned), in: store, isAbandoned)
  }
}

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

/// `GET /v1/objects/{Entity}` for a client that accepts an event stream: a live query.
struct QueryStreamHandler: Sendable {
  let store: Store
  let streams: QueryStreams
  /// Where live queries wait for their turn.
  let openings: OpeningQueue

  /// Opens the stream; to `HEAD` only its head is sent.
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
