import Dispatch
package import HTTPServer
import HTTPTypes
package import Logging
package import ModelStore

/// The way of a request to its handler: finds its route, makes a response of every problem, and counts what was
/// answered.
///
/// It is also the hub's delegate: it gives heartbeats, and deals with lagging and ended streams.
package final class RequestRouter: RequestHandler, StreamHubDelegate, Sendable {
  private let store: Store
  private let streams: StreamRegistry
  private let feed: JournalFeed
  private let idempotency: IdempotencyStore
  private let registry: PrometheusRegistry
  private let hosts: HostNames
  private let logger: Logger
  private let readiness: Readiness
  private let table: RouteTable
  /// Requests whose path has no route.
  private let otherCounts = RequestCounts(route: "other")
  /// Where lagging streams are dealt with, so that the streams of their hub thread need not wait for it.
  private let laggingStreams = DispatchQueue(label: "keyway.lagging-streams", qos: .utility)

  /// The router to a store and its streams. `makeID` gives a new object id at each call.
  package init(
    store: Store, streams: StreamRegistry, feed: JournalFeed, hub: StreamHub, pages: PageStore,
    idempotency: IdempotencyStore, limits: RequestLimits, hosts: HostNames, registry: PrometheusRegistry,
    logger: Logger, makeID: @escaping @Sendable () -> String
  ) {
    self.store = store
    self.streams = streams
    self.feed = feed
    self.idempotency = idempotency
    self.registry = registry
    self.hosts = hosts
    self.logger = logger
    readiness = Readiness(of: store)
    let writer = TransactionWriter(store: store, limits: limits)
    table = RouteTable(
      Handlers(
        objects: ObjectHandlers(store: store, writer: writer, limits: limits, makeID: makeID),
        keyPaths: KeyPathHandlers(store: store, writer: writer, limits: limits, makeID: makeID),
        fetches: FetchHandler(store: store, pages: pages, limits: limits),
        transactions: TransactionHandler(schema: store.schema, writer: writer, limits: limits, makeID: makeID),
        streams: StreamHandlers(store: store, streams: streams, readiness: readiness),
        journal: JournalHandler(store: store, streams: streams, feed: feed, limits: limits),
        schema: SchemaHandlers(schema: store.schema),
        operations: OperationsHandlers(
          store: store, streams: streams, hub: hub, idempotency: idempotency, readiness: readiness, registry: registry),
        idempotency: IdempotentHandlers(store: idempotency, registry: registry)))
    let counts = table.routes.map(\.counts) + [otherCounts]
    registry.collect { registry in
      for counts in counts { counts.export(to: registry) }
    }
  }

  /// From now on requests are answered `draining`, but for those of operators.
  package func beginDraining() {
    readiness.beginDraining()
  }

  /// Remembers the responses that were kept with commits; `now` is in milliseconds since 1970.
  package func restore(_ attachments: [StoredAttachment], at now: Int64) {
    idempotency.restore(attachments, at: now)
  }

  // MARK: RequestHandler

  /// Answers a request; the one place that catches problems, and that counts.
  package func handle(_ request: borrowing Request) -> HandlerResponse {
    var route: Route?
    let response: HandlerResponse
    do throws(Problem) {
      response = try self.response(to: request, &route)
    } catch {
      logger.debug("refused", metadata: ["code": "\(error.code.rawValue)", "route": "\(route?.pattern ?? "")"])
      response = .response(error.response)
    }
    return counted(response, request.method, (route?.counts ?? otherCounts))
  }

  private func counted(
    _ response: HandlerResponse, _ method: HTTPRequest.Method, _ counts: RequestCounts
  ) -> HandlerResponse {
    switch response {
    case .response(let response): counts.count(method, status: response.status)
    case .stream: counts.count(method, status: .ok)
    case .deferred(let start):
      return .deferred { completion in
        start(
          completion.preparing { response in
            counts.count(method, status: response.status)
            return response
          } willStream: {
            counts.count(method, status: .ok)
          })
      }
    }
    return response
  }

  private func response(to request: borrowing Request, _ found: inout Route?) throws(Problem) -> HandlerResponse {
    if let host = request.header(.hostName), !hosts.contains(host) {
      throw Problem(.misdirectedRequest, "'\(host)' is none of this server's names")
    }
    let method = request.method
    if request.target == "*", method == .options { return .response(Response(status: .noContent)) }
    let target = try Target(request.target)
    guard let route = table.route(target.segments) else {
      throw Problem(.notFound, "nothing is served under this path")
    }
    found = route
    if method == .options {
      var fields: HTTPFields = [.allow: route.allow]
      fields[.acceptPatch] = route.acceptPatch
      return .response(Response(status: .noContent, fields: fields))
    }
    guard var handler = route.handler(of: method) else {
      throw Problem(.methodNotAllowed, "\(method.rawValue) is none of \(route.allow)").with(.allow, route.allow)
    }
    if method == .get || method == .head, !route.forms.isEmpty {
      let form = try Negotiation.form(of: request, available: route.forms)
      if form == .stream, let stream = route.stream { handler = stream }
    }
    if !route.isAlwaysServed { try readiness.check() }
    return try handler(request, RequestContext(route: route, target: target))
  }

  /// Answers what the server refuses before there is a request, and what it cannot answer afterwards.
  package func response(to fault: RequestFault) -> Response {
    switch fault {
    case .bodyTooLarge(let limit): Problem(.contentTooLarge, "a body has at most \(limit) bytes").response
    case .headersTooLarge(let limit): Problem(.headersTooLarge, "the headers have at most \(limit) bytes").response
    case .malformedTarget: Problem(.malformedRequest, "the request target is malformed").response
    case .malformedMethod: Problem(.malformedRequest, "the method is no token").response
    case .ambiguousLength:
      Problem(.malformedRequest, "the length of the body is ambiguous: one Content-Length, or chunks").response
    case .overloaded: Problem(.overloaded, "no descriptor is left for an event stream").response
    case .draining:
      Problem(.draining, "the server stops before it has the answer; the request may have been carried out").response
    case .unanswered: Problem(.internalError, "the request was let go without an answer").response
    }
  }

  // MARK: StreamHubDelegate

  /// A `heartbeat` event; its id moves the client's cursor while nothing happens.
  package func heartbeat(at position: UInt64) -> EventBytes {
    streams.heartbeat(at: StreamPosition(rawValue: position).revision)
  }

  /// The `bye` of a stream that the server ends.
  package func farewell(_ reason: StreamEnd) -> EventBytes {
    streams.farewell(reason.rawValue)
  }

  /// Remembers what the subscriber has, so that one event can bring it what it misses from now on.
  package func streamLagged(_ id: StreamID, firstMissed position: UInt64) {
    registry.increment("keyway_lags_total")
    if feed.beginLag(id, lastTold: StreamPosition(rawValue: position).lastTold) { return }
    streams.reportLag(id, firstMissed: position)
    laggingStreams.async { [self] in store.withPublication { streams.beginLag(id, &$0) } }
  }

  /// Sends the subscriber what it missed.
  package func streamCaughtUp(_ id: StreamID) {
    if feed.catchUpLater(id) { return }
    laggingStreams.async { [self] in store.withPublication { streams.catchUp(id, &$0) }?() }
  }

  /// Ends what the stream observed.
  package func streamEnded(_ id: StreamID, _ end: StreamEnd) {
    feed.streamEnded(id)
    store.withPublication { streams.streamEnded(id, &$0) }
    registry.increment("keyway_disconnects_total", ["reason": end.rawValue])
    logger.debug("stream ended", metadata: ["stream": "\(id.number)", "reason": "\(end.rawValue)"])
  }
}
