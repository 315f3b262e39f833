import HTTPServer
import HTTPTypes
import KeyValueModel
import Store

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
