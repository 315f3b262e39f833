internal import Dispatch
package import HTTPServer
internal import HTTPTypes
internal import KeyValueModel
package import Logging
internal import Metrics
package import ModelStore
internal import Synchronization

/// The wire contract: routes requests to the model and streams, and turns every mistake into its problem.
package final class KeywayAPI: RequestHandler, StreamHubDelegate, Sendable {
  /// The version of the server.
  package static let version = "0.1.0"

  let store: Store
  let streams: StreamRegistry
  let feed: JournalFeed
  let hub: StreamHub
  let pages: PageStore
  let idempotency: IdempotencyStore
  let registry: PrometheusRegistry
  let extents = ExtentCache()
  let limits: RequestLimits
  /// Ids for objects that are created without one.
  let makeID: @Sendable () -> String

  private let hosts: HostNames
  let requests = RequestMetrics()
  private let logger: Logger
  private let draining = Atomic(false)
  /// Where those who come back wait for their streams, and those who open live queries.
  let resumptions: OpeningQueue
  let queryOpenings: OpeningQueue
  /// Where slow readers are seen to, so that nobody else waits for it.
  private let slowReaders = DispatchQueue(label: "keyway.slow-readers", qos: .utility)

  /// The API over a store and its streams. `makeID` gives a new object id at each call.
  package init(
    store: Store, streams: StreamRegistry, feed: JournalFeed, hub: StreamHub, pages: PageStore,
    idempotency: IdempotencyStore, limits: RequestLimits, hosts: HostNames, registry: PrometheusRegistry,
    logger: Logger, makeID: @escaping @Sendable () -> String
  ) {
    self.store = store
    self.streams = streams
    self.feed = feed
    self.hub = hub
    self.pages = pages
    self.idempotency = idempotency
    self.limits = limits
    self.hosts = hosts
    self.registry = registry
    self.logger = logger
    self.makeID = makeID
    resumptions = OpeningQueue(label: "keyway.resumptions", limit: streams.limits.opening)
    queryOpenings = OpeningQueue(label: "keyway.queries", limit: streams.limits.opening)
  }

  /// Whether the server is about to stop and takes no new work.
  package var isDraining: Bool { draining.load(ordering: .relaxed) }

  /// From now on requests are answered `draining`, but for those of operators.
  package func beginDraining() {
    draining.store(true, ordering: .relaxed)
  }

  // MARK: RequestHandler

  /// Answers a request; the one place that catches problems.
  package func handle(_ request: borrowing Request) -> HandlerResponse {
    var route: Route?
    let answer: HandlerResponse
    do throws(Problem) {
      answer = try self.route(request, &route)
    } catch {
      logger.debug(
        "refused",
        metadata: ["code": "\(error.code.rawValue)", "route": "\(route.map { Route.patterns[$0.patternIndex] } ?? "")"])
      answer = .response(error.response)
    }
    count(answer, request.method, route)
    return answer
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

  private func count(_ answer: HandlerResponse, _ method: HTTPRequest.Method, _ route: Route?) {
    switch answer {
    case .response(let response): requests.count(method, route, status: response.status.code)
    case .stream: requests.count(method, route, status: 200)
    case .deferred: break  // Counted when the writer has answered.
    }
  }

  private func route(_ request: borrowing Request, _ found: inout Route?) throws(Problem) -> HandlerResponse {
    if let host = request.header(.hostName), !hosts.contains(host) {
      throw Problem(.misdirectedRequest, "'\(host)' is none of this server's names")
    }
    let method = request.method
    if request.target == "*", method == .options { return .response(Response(status: .noContent)) }
    let target = try Target(request.target)
    guard let route = Route(target.segments) else {
      throw Problem(.notFound, "nothing is served under this path")
    }
    found = route
    if method == .options {
      var fields: HTTPFields = [.allow: route.allow]
      fields[.acceptPatch] = route.acceptPatch
      return .response(Response(status: .noContent, fields: fields))
    }
    guard route.methods.contains(method == .head ? .get : method) else {
      throw Problem(.methodNotAllowed, "\(method.rawValue) is none of \(route.allow)").with(.allow, route.allow)
    }
    return try dispatch(route, method == .head ? .get : method, request, target)
  }

  private func dispatch(
    _ route: Route, _ method: HTTPRequest.Method, _ request: borrowing Request, _ target: Target
  ) throws(Problem) -> HandlerResponse {
    switch route {
    case .health: return health()
    case .ready: return try readiness()
    case .metrics: return metrics()
    default: break
    }
    if !route.hasStreams, method == .get { _ = try form(of: request, available: [.json]) }
    switch route {
    case .status: return status()
    case .problem(let code): return try explanation(of: code)
    default: break
    }
    guard !isDraining else { throw Problem(.draining, "the server is about to stop") }
    try checkRecovered()
    if method == .post, route.isWritten { return try performOnce(route, request, target) }
    return try perform(route, method, request, target)
  }

  /// Does what a request asks for, where it is neither for operators nor refused.
  func perform(
    _ route: Route, _ method: HTTPRequest.Method, _ request: borrowing Request, _ target: Target
  ) throws(Problem) -> HandlerResponse {
    switch (route, method) {
    case (.entities, _): return entities()
    case (.entity(let name), _): return try entity(name)
    case (.allObjects, _): return try fetchAll(request, target)
    case (.objects(let entity), .get): return try fetch(entity, request, target)
    case (.objects(let entity), _): return try createObject(entity, request, target)
    case (.object(let entity, let id), .get): return try getObject(entity, id, request, target)
    case (.object(let entity, let id), .put): return try putObject(entity, id, request, target)
    case (.object(let entity, let id), .patch): return try patchObject(entity, id, request, target)
    case (.object(let entity, let id), _): return try deleteObject(entity, id, request, target)
    case (.keyPath(let entity, let id, let path), .get): return try getKeyPath(entity, id, path, request, target)
    case (.keyPath(let entity, let id, let path), .put): return try putKeyPath(entity, id, path, request, target)
    case (.keyPath(let entity, let id, let path), .post): return try postKeyPath(entity, id, path, request, target)
    case (.keyPath(let entity, let id, let path), _): return try deleteKeyPath(entity, id, path, request, target)
    case (.transactions, _): return try commitTransaction(request, target)
    case (.journal, _): return try getJournal(request, target)
    case (.streams, .get): return try getStreams(request, target)
    case (.streams, _): return try postStreams(request, target)
    case (.stream(let name), .get): return try getStream(name, target)
    case (.stream(let name), _): return try deleteStream(name, target)
    case (.cells(let stream), .get): return try getCells(stream, nil, target)
    case (.cells(let stream), .put): return try putCells(stream, request, target)
    case (.cells(let stream), _): return try deleteCells(stream, nil, target)
    case (.cell(let stream, let cell), .get): return try getCells(stream, cell, target)
    case (.cell(let stream, let cell), .put): return try putCell(stream, cell, request, target)
    case (.cell(let stream, let cell), .patch): return try patchCell(stream, cell, request, target)
    case (.cell(let stream, let cell), _): return try deleteCells(stream, cell, target)
    default: throw Problem(.notFound, "nothing is served under this path")
    }
  }

  // MARK: StreamHubDelegate

  /// A `heartbeat` event; its id moves the client's cursor while nothing happens.
  package func heartbeat(at position: UInt64) -> EventBytes {
    streams.heartbeat(at: StreamPosition(rawValue: position).revision)
  }

  /// The `bye` of a stream that the server ends.
  package func closingEvent(_ reason: StreamEnd) -> EventBytes {
    streams.farewell(reason.rawValue)
  }

  /// Remembers what the stream has, so that it can be told in one what it misses from now on.
  package func streamLagged(_ id: StreamID, firstMissed position: UInt64) {
    Counter(label: "keyway_lags_total", factory: registry).increment()
    if feed.beginLag(id, lastTold: StreamPosition(rawValue: position).lastTold) { return }
    streams.reportLag(id, firstMissed: position)
    slowReaders.async { [self] in store.withPublication { streams.beginLag(id, &$0) } }
  }

  /// Tells the stream what it missed.
  package func streamCaughtUp(_ id: StreamID) {
    if feed.catchUpLater(id) { return }
    slowReaders.async { [self] in store.withPublication { streams.catchUp(id, &$0) }?() }
  }

  /// Ends what the stream observed.
  package func streamEnded(_ id: StreamID, _ end: StreamEnd) {
    feed.streamEnded(id)
    store.withPublication { streams.streamEnded(id, &$0) }
    Counter(label: "keyway_disconnects_total", dimensions: [("reason", end.rawValue)], factory: registry).increment()
    logger.debug("stream ended", metadata: ["stream": "\(id.number)", "reason": "\(end.rawValue)"])
  }
}

// MARK: - Answers

extension KeywayAPI {
  func cursor(_ revision: Revision) -> String { Cursor(epoch: store.epoch, revision: revision).description }

  func entityTag(_ revision: Revision) -> String { Cursor(epoch: store.epoch, revision: revision).entityTag }

  /// A JSON answer that shows the state at a revision.
  func json(_ body: [UInt8], at revision: Revision? = nil, tag: Revision? = nil) -> Response {
    // Appended, since setting looks for fields of the same name first.
    var fields = HTTPFields()
    fields.reserveCapacity(3)
    fields.append(HTTPField(name: .contentType, value: Body.json))
    if let tag { fields.append(HTTPField(name: .eTag, value: entityTag(tag))) }
    if let revision { fields.append(HTTPField(name: .keywayCursor, value: cursor(revision))) }
    return Response(status: .ok, fields: fields, body: body)
  }

  func json(_ body: JSONObject) -> Response {
    var bytes: [UInt8] = []
    body.appendJSON(to: &bytes)
    return json(bytes)
  }

  /// How the client wants to read a resource, or `not-acceptable`.
  func form(
    of request: borrowing Request, available: [Negotiation.Form] = [.json, .stream]
  ) throws(Problem) -> Negotiation.Form {
    guard let form = Negotiation.form(request.header(.accept), available: available) else {
      throw notAcceptable(available.map(\.type).joined(separator: ", "))
    }
    return form
  }

  func notAcceptable(_ types: String) -> Problem {
    Problem(.notAcceptable, "this resource is available as \(types)").with(.accept, types)
  }
}
