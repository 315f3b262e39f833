import HTTPServer
import HTTPTypes
package import Store

/// Every resource of the server. A request whose path matches no row is `not-found`. One whose method the row does not
/// have is `method-not-allowed`.
struct RouteTable: Sendable {
  /// The rows.
  let routes: [Route]
  /// The routes, indexed by the number of segments of their paths.
  private let byCount: [[Route]]
  /// The route of all other paths except those below `/v1`: an application's own files. Nil if there are none.
  private let rest: Route?

  /// Creates the table of a server. `nodeRoutes` are its node's resources for other nodes.
  init(_ handlers: Handlers, _ nodeRoutes: [Route]) {
    let (objects, keyPaths, transactions) = (handlers.objects, handlers.keyPaths, handlers.transactions)
    let (fetches, streams, cells, journal) = (handlers.fetches, handlers.streams, handlers.cells, handlers.journal)
    let (schema, operations, sessions) = (handlers.schema, handlers.operations, handlers.sessions)
    let (accounts, revocations, files) = (handlers.accounts, handlers.revocations, handlers.files)
    // Makes a retried `POST` with an `Idempotency-Key` apply once.
    let once = handlers.idempotency.once
    var routes: [Route] =
      [
        Route("/healthz", [.get: operations.health], form: nil, isAlwaysServed: true, isUnlimited: true),
        Route("/readyz", [.get: operations.ready], form: nil, isAlwaysServed: true, isUnlimited: true),
        Route(
          "/metrics", [.get: handlers.metrics.get], form: nil, isAlwaysServed: true, isUnlimited: true,
          audience: .operators
        ),
        Route("/v1/status", [.get: operations.status], isAlwaysServed: true, audience: .operators),
        Route("/v1/problems/{code}", [.get: operations.problem], isAlwaysServed: true),
        Route("/v1/session", [.get: sessions.get, .post: sessions.begin, .delete: sessions.end], isAlwaysServed: true),
        Route("/v1/access/accounts", [.get: accounts.list], audience: .admins),
        Route(
          "/v1/access/accounts/{name}", [.get: accounts.get, .put: accounts.put, .delete: accounts.delete],
          audience: .admins, isForwarded: true),
        Route("/v1/access/revocations", [.get: revocations.list], audience: .admins),
        Route(
          "/v1/access/revocations/{sub}",
          [.get: revocations.get, .put: revocations.put, .delete: revocations.delete], audience: .admins,
          isForwarded: true),
        Route("/v1/entities", [.get: schema.entities], audience: .identities),
        Route("/v1/entities/{Entity}", [.get: schema.entity], audience: .identities),
        Route("/v1/openapi.json", [.get: handlers.description.get], audience: .identities),
        Route("/v1/objects", [.get: fetches.fetchAll], audience: .admins),
        Route(
          "/v1/objects/{Entity}", [.get: fetches.fetch, .post: once(objects.create)],
          stream: handlers.queryStreams.open, audience: .objects, isForwarded: true),
        Route(
          "/v1/objects/{Entity}/{id}",
          [.get: objects.get, .put: objects.put, .patch: objects.patch, .delete: objects.delete],
          stream: handlers.objectStreams.openObject, patchTypes: Body.patchTypes, audience: .objects,
          isForwarded: true),
        Route(
          "/v1/objects/{Entity}/{id}/{keyPath}",
          [.get: keyPaths.get, .put: keyPaths.put, .post: once(keyPaths.post), .delete: keyPaths.delete],
          stream: handlers.objectStreams.openKeyPaths, audience: .objects, isForwarded: true),
        Route("/v1/transactions", [.post: once(transactions.commit)], audience: .objects, isForwarded: true),
        Route("/v1/journal", [.get: journal.lines], stream: journal.open, form: .lines, audience: .admins),
        Route("/v1/streams", [.get: streams.list, .post: cells.openWithCells], stream: cells.open, audience: .streams),
        Route(
          "/v1/streams/{stream}", [.get: streams.get, .delete: streams.delete], stream: cells.resume,
          audience: .streams),
        Route(
          "/v1/streams/{stream}/cells",
          [.get: cells.getAll, .put: cells.putAll, .patch: cells.patchAll, .delete: cells.deleteAll],
          patchTypes: [Body.json, Body.mergePatch], audience: .streams),
        Route(
          "/v1/streams/{stream}/cells/{cell}",
          [.get: cells.get, .put: cells.put, .patch: cells.patch, .delete: cells.delete],
          patchTypes: [Body.json, Body.mergePatch], audience: .streams),
      ] + nodeRoutes + Self.pages(files)
    let longest = routes.map(\.segmentCount).max() ?? 0
    byCount = (0...longest).map { [routes] count in routes.filter { $0.segmentCount == count } }
    rest =
      files.hasFolder
      ? Route("/{file}", [.get: files.published], form: nil, isAlwaysServed: true, audience: .visitors)
      : nil
    if let rest { routes.append(rest) }
    self.routes = routes
  }

  /// Returns the routes for browsers.
  private static func pages(_ files: FileHandlers) -> [Route] {
    [
      Route("/", [.get: files.front], form: nil, isAlwaysServed: true, audience: .visitors),
      Route("/favicon.ico", [.get: files.icon], form: nil, isAlwaysServed: true, audience: .visitors),
      Route("/keyway.js", [.get: files.library("keyway.js")], form: nil, isAlwaysServed: true, audience: .visitors),
      Route("/keyway.d.ts", [.get: files.library("keyway.d.ts")], form: nil, isAlwaysServed: true, audience: .visitors),
      Route("/console", [.get: files.consoleFolder], form: nil, isAlwaysServed: true, audience: .visitors),
      Route("/console/{file}", [.get: files.console], form: nil, isAlwaysServed: true, audience: .visitors),
    ]
  }

  /// Returns the route of a path, or nil if nothing is served there.
  func route(_ path: [String]) -> Route? {
    if path.count < byCount.count, let route = byCount[path.count].first(where: { $0.matches(path) }) { return route }
    return path.first == "v1" ? nil : rest
  }
}

/// The handlers that the route table calls.
struct Handlers: Sendable {
  let objects: ObjectHandlers
  let keyPaths: KeyPathHandlers
  let fetches: FetchHandler
  let transactions: TransactionHandler
  let objectStreams: ObjectStreamHandlers
  let queryStreams: QueryStreamHandler
  let cells: CellHandlers
  let streams: StreamHandlers
  let journal: JournalHandler
  let schema: SchemaHandlers
  let description = DescriptionHandler()
  let operations: OperationsHandlers
  let metrics: MetricsHandler
  let idempotency: IdempotentHandlers
  let sessions: SessionHandlers
  let accounts: AccountHandlers
  let revocations: RevocationHandlers
  let files: FileHandlers

  /// Creates the handlers of a server from its parts.
  init(_ parts: ServerParts) {
    let (store, readings, limits, makeID) = (parts.store, parts.readings, parts.limits, parts.makeID)
    let (streams, registry) = (parts.streams, parts.streams.registry)
    let idempotency = IdempotentHandlers(store: parts.idempotency, registry: parts.metrics, objects: store)
    let writer = TransactionWriter(store: store, readings: readings, limits: limits, idempotency: idempotency)
    objects = ObjectHandlers(
      store: store, writer: writer, readings: readings, limits: limits, streams: registry, makeID: makeID)
    keyPaths = KeyPathHandlers(store: store, writer: writer, readings: readings, limits: limits, makeID: makeID)
    fetches = FetchHandler(store: store, pages: parts.pages, readings: readings)
    transactions = TransactionHandler(
      schema: store.schema, writer: writer, limits: limits, streams: registry, makeID: makeID)
    objectStreams = ObjectStreamHandlers(
      store: store, streams: streams.objects, openings: parts.queryOpenings, resumptions: parts.resumptions)
    queryStreams = QueryStreamHandler(store: store, streams: streams.queries, openings: parts.queryOpenings)
    cells = CellHandlers(
      store: store, streams: streams.cells, openings: parts.queryOpenings, resumptions: parts.resumptions,
      readings: readings)
    self.streams = StreamHandlers(store: store, node: parts.node, streams: registry, readings: readings)
    journal = JournalHandler(store: store, streams: streams.journal, readings: readings, limits: limits)
    schema = SchemaHandlers(schema: store.schema)
    operations = OperationsHandlers(
      store: store, node: parts.node, streams: registry, hub: parts.hub, ledger: parts.ledger,
      readiness: parts.readiness)
    metrics = MetricsHandler(
      store: store, streams: registry, hub: parts.hub, idempotency: parts.idempotency, ledger: parts.ledger,
      registry: parts.metrics)
    self.idempotency = idempotency
    sessions = SessionHandlers(
      access: parts.access, passwords: parts.passwords, store: store, node: parts.node, readiness: parts.readiness)
    accounts = AccountHandlers(access: parts.access, passwords: parts.passwords, store: store, readings: readings)
    revocations = RevocationHandlers(revocations: parts.access.revocations, readings: readings)
    files = parts.files
  }
}

/// The parts of a server that its handlers use.
package struct ServerParts: Sendable {
  package let store: Store
  let node: any Node
  package let streams: Streams
  let hub: StreamHub
  let ledger: MemoryLedger
  let pages: PageStore
  let idempotency: IdempotencyStore
  package let access: AccessControl
  let passwords: Passwords
  package let files: FileHandlers
  let metrics: PrometheusRegistry
  let limits: RequestLimits
  let readiness: Readiness
  package let readings: Readings
  /// Separate queues for streams that resume and for live queries.
  let resumptions: OpeningQueue
  let queryOpenings: OpeningQueue
  /// Returns a new object id at each call.
  let makeID: @Sendable () -> String
}
