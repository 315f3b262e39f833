import Dispatch
package import HTTPServer
package import KeyValueModel
import KeyValueObserving
package import Logging
package import Store
import Support

/// The whole server: a store, its streams, and the HTTP side of both.
///
/// Life cycle: the parts are made from the inside out and serve as soon as the initializer returns; `drain` ends them
/// from the outside in, once.
package final class KeywayServer: Sendable {
  /// The settings of a server.
  package struct Configuration: Sendable {
    /// The address to listen on, or `unix:` and the path of a socket.
    package var host = "127.0.0.1"
    /// The port; 0 takes a free one. A socket file has none.
    package var port: UInt16 = 8080
    /// The names under which the server answers besides its address and the loopback names.
    package var names: [String] = []
    /// The limits of the store.
    package var store = StoreLimits()
    /// The limits of HTTP and of the streams' connections.
    package var server = ServerLimits()
    /// The limits on the memory that clients may make the process use.
    package var memory = MemoryLimits()
    /// The limits on what streams observe.
    package var streams = StreamLimits()
    /// The limits on fetches.
    package var pages = PageStore.Limits()
    /// The limits on what one request may ask for.
    package var requests = RequestLimits()
    /// The limits on what is remembered of requests with an `Idempotency-Key`.
    package var idempotency = IdempotencyMemory.Limits()

    /// The options of the server's node, which deals with other servers that have the same objects. A journal that
    /// several servers share requires options of the module `Cluster`.
    package var node: any NodeOptions = SingleNode.Options()
    /// The limits on waiting for a revision that a request names.
    package var waits = RevisionWaits.Limits()
    /// The settings that say who may use the server.
    package var access = AccessOptions()
    /// The files that are served.
    package var files = FileOptions()

    /// The requests that the access log reports. `log.access`.
    package var accessLog = AccessLogLevel.off
    /// True if those lines have the `sub` of the identity that sent the request. `log.accessIdentities`.
    package var accessLogIdentities = false

    /// The number of seconds without an occurrence after which a condition counts as ended. `log.conditionSeconds`.
    package var conditionSeconds = 60

    /// The defaults.
    package init() {}

    /// The number of seconds of silence after which a stream is sent a heartbeat, as announced by `open`.
    /// `heartbeat.seconds`.
    package var heartbeatSeconds: Int {
      get { server.heartbeatSeconds }
      set {
        server.heartbeatSeconds = newValue
        streams.heartbeatSeconds = newValue
      }
    }

    /// The maximum size in bytes of what one commit does to a stream, or a stream begins with. `streams.eventBytes`.
    package var eventBytes: Int {
      get { streams.eventBytes }
      set {
        streams.eventBytes = newValue
        store.bytesPerObserver = newValue
      }
    }

    /// The limits of HTTP, with the limit of `access.streams` for one client.
    fileprivate var limits: ServerLimits {
      var limits = server
      if access.streams > 0 { limits.streamsPerAddress = min(limits.streamsPerAddress, access.streams) }
      return limits
    }

    /// The limits of the store, with leases that last `streams.resumeSeconds`, and its shares of `memory.bytes`.
    fileprivate var storeLimits: StoreLimits {
      var limits = store
      let shares = MemoryShares(memory)
      limits.transaction.memoryBytes = shares.objectBytes
      limits.historyBytes = min(limits.historyBytes, shares.historyBytes)
      limits.streamLeaseSeconds = streams.resumeSeconds
      return limits
    }

    /// The maximum number of steps that one request may take to read, or to open its live queries. `request.steps`.
    package var requestSteps: Int {
      get { requests.steps }
      set {
        requests.steps = newValue
        store.queryOpeningCost = newValue
      }
    }

    /// The number of threads that serve requests, of those that write to streams, and of those for long requests, of
    /// which there are at least two; 0 for one per core. `http.threads`.
    package var threads: Int {
      get { server.threads }
      set {
        server.threads = newValue
        requests.threads = newValue > 0 ? max(2, newValue) : 0
      }
    }

    /// The maximum number of long requests that wait for a thread; one client may have a quarter. `requests.waiting`.
    package var waitingRequests: Int {
      get { requests.waiting }
      set {
        requests.waiting = newValue
        requests.waitingPerClient = max(1, newValue / 4)
      }
    }

    /// The maximum number of fetches that are kept; one client may have a sixteenth. `fetch.pages`.
    package var keptFetches: Int {
      get { pages.fetches }
      set {
        pages.fetches = newValue
        pages.clientFetches = max(1, newValue / 16)
      }
    }
  }

  /// The store of the objects.
  package let store: Store
  private let schemaText: String?
  private let parts: ServerParts
  private let rates: RequestRateLimiter
  private let accessLog: AccessLogger?
  private let http: Server
  private let housekeeper: Housekeeper

  /// Starts serving the store of a journal; without one, an empty store in memory. A store whose journal has records is
  /// not ready before `recover`; one whose journal has none is filled by `prepare` before the first connection is
  /// accepted. Connections are accepted from `socket`; without one, from the address and port of the configuration,
  /// which are bound before anything is written. `schemaText` is the text of the schema, to which a journal that was
  /// written under another schema is brought. The access log is written to `log`; without one there is none. `now`
  /// returns seconds of a monotonic clock, by which pages and idempotency keys age. Throws an `HTTPServerError`, a
  /// `StoreError`, or what `prepare` throws.
  package init(
    schema: Schema, schemaText: String? = nil, configuration: Configuration, logger: Logger,
    journal: (any TransactionJournal)? = nil, socket: ListeningSocket? = nil, log: LogOutput? = nil,
    prepare: (Store) throws -> Void = { _ in },
    now: @escaping @Sendable () -> UInt64 = { UInt64(SystemClock.nanoseconds / 1_000_000_000) }
  ) throws {
    self.schemaText = schemaText
    try configuration.access.check(host: configuration.host, schemaHasRules: schema.hasRules)
    let journal = journal ?? MemoryJournal(identity: JournalIdentity(epoch: Self.makeEpoch(), schema: ""))
    let access = try Self.access(configuration.access, schema, journal, logger)
    let origins = try Origins(configuration.access.origins)
    let proxies = try TrustedProxies(configuration.access.proxies)
    let socket = try socket ?? ListeningSocket(host: configuration.host, port: configuration.port)
    let random: @Sendable () -> UInt64 = { UInt64.random(in: .min ... .max) }
    let registry = PrometheusRegistry()
    let ledger = MemoryLedger(limit: .max, clientLimit: .max)
    let watch = MemoryWatch(ledger, limits: configuration.memory)
    let conditions = ConditionLog(logger: logger, quietSeconds: configuration.conditionSeconds)
    let rates = RequestRateLimiter(configuration.access.rates) { UInt64(SystemClock.nanoseconds) }
    let files = try FileHandlers(configuration.files)
    let node = try configuration.node.makeNode(
      at: NodeSite(
        host: configuration.host, port: socket.port, journal: journal, hasAccess: access.isOn,
        waits: configuration.waits))
    let hub = StreamHub(
      limits: configuration.limits, ledger: ledger, numbers: node.streamNumbers?.first ?? 0, logger: logger)
    let services = StreamServices(
      hub: hub, ledger: ledger, epoch: journal.identity.epoch, limits: configuration.streams, mark: node.mark,
      now: now, random: random)
    let streams = Streams(services, journal: journal)
    store = Store(
      schema: schema, journal: journal, limits: configuration.storeLimits,
      publisher: NodePublisher(streams: streams, node: node), streams: node.streamNumbers,
      now: { SystemClock.epochMilliseconds }, notify: { Self.note($0, node, conditions) })
    let readiness = Readiness(of: store)
    parts = ServerParts(
      store: store, node: node, streams: streams, hub: hub, ledger: ledger,
      pages: PageStore(limits: configuration.pages, ledger: ledger, mark: node.mark, now: now, random: random),
      idempotency: IdempotencyStore(limits: configuration.idempotency, ledger: ledger, now: now), access: access,
      passwords: Passwords(access.options), files: files, metrics: registry, limits: configuration.requests,
      readiness: readiness, readings: Readings(configuration.requests, ledger: ledger),
      resumptions: OpeningQueue(label: "keyway.resumptions", limits: configuration.streams, readiness: readiness),
      queryOpenings: OpeningQueue(label: "keyway.queries", limits: configuration.streams, readiness: readiness),
      makeID: { Identifiers.makeUUIDv7(milliseconds: SystemClock.epochMilliseconds, random: (random(), random())) })
    let api = try Self.router(parts, configuration, origins, rates, conditions, logger)
    housekeeper = Housekeeper(parts, rates: rates)
    self.rates = rates
    accessLog = log.map {
      AccessLogger(configuration.accessLog, namesIdentities: configuration.accessLogIdentities, output: $0)
    }
    // The journal is not checked again: others that write to it may have begun it meanwhile.
    if case .serving = store.condition {
      _ = try Self.recover(parts, schemaText)
      try prepare(store)
    }
    try hub.start(
      delegate: StreamMonitor(
        store: store, streams: streams.registry, node: node, metrics: registry, conditions: conditions, logger: logger))
    do {
      http = try Server(
        socket: socket, limits: configuration.limits, ledger: ledger, watch: watch, hub: hub, handler: api,
        logger: logger, conditions: conditions, accessLog: accessLog, proxies: proxies)
    } catch {
      hub.stop()
      throw error
    }
    Self.collect(conditions, log, http, in: registry)
    housekeeper.start()
    node.start(store)
  }

  /// Makes the router to the resources of a server.
  private static func router(
    _ parts: ServerParts, _ configuration: Configuration, _ origins: Origins, _ rates: RequestRateLimiter,
    _ conditions: ConditionLog, _ logger: Logger
  ) throws -> RequestRouter {
    let (store, node) = (parts.store, parts.node)
    keepAttachments(parts)
    let admission = Admission(
      access: parts.access, streams: parts.streams.registry, takesForwardedWrites: node.takesForwardedWrites)
    let placement = node.attach(to: parts, admission, conditions, restore: restoring(parts))
    let handlers = Handlers(parts)
    let table = RouteTable(handlers, node.routes(in: parts))
    handlers.description.describe(table.routes, schema: store.schema, access: parts.access)
    let router = RequestRouter(
      table, placement: placement, store: store, registry: parts.streams.registry, readiness: parts.readiness,
      hosts: try HostNames(host: configuration.host, others: configuration.names, port: configuration.port),
      origins: origins, admission: admission, rates: rates, conditions: conditions, logger: logger)
    let (readings, passwords) = (parts.readings, parts.passwords)
    let (resumptions, queries) = (parts.resumptions, parts.queryOpenings)
    parts.metrics.collect { [counts = router.counts] registry in
      for count in counts { count.export(to: registry) }
      readings.export(to: registry)
      passwords.export(to: registry)
      node.export(store, to: registry)
      registry.set(.openingStreams, ["queue": "resumptions"], to: resumptions.count)
      registry.set(.openingStreams, ["queue": "queries"], to: queries.count)
    }
    return router
  }

  /// Makes snapshots keep the accounts, the sessions and the remembered responses.
  private static func keepAttachments(_ parts: ServerParts) {
    let store = parts.store
    store.keepAttachments {
      [idempotency = parts.idempotency, access = parts.access, epoch = store.epoch] revision in
      let now = SystemClock.epochMilliseconds
      return access.accounts.kept(upTo: revision, milliseconds: now) + access.sessions.kept(upTo: revision)
        + idempotency.kept(upTo: Cursor(epoch: epoch, revision: revision), at: now)
    }
  }

  /// Returns a function that restores the responses that were kept with commits, the sessions that these began and
  /// ended, and the accounts.
  private static func restoring(_ parts: ServerParts) -> @Sendable ([StoredAttachment]) -> Void {
    { [idempotency = parts.idempotency, node = parts.node, access = parts.access] attachments in
      let now = SystemClock.epochMilliseconds
      idempotency.restore(attachments, at: now)
      node.restore(attachments)
      access.sessions.restore(attachments, at: now)
      access.accounts.restore(attachments)
    }
  }

  private static func access(
    _ options: AccessOptions, _ schema: Schema, _ journal: any TransactionJournal, _ logger: Logger
  ) throws -> AccessControl {
    let revocations = try StoreError.of { () throws(JournalError) in
      try Revocations(of: journal, limit: options.revocations)
    }
    return try AccessControl(options, schema: schema, revocations: revocations, logger: logger) {
      Double(SystemClock.epochMilliseconds) / 1_000
    }
  }

  /// Returns a random word that tells a new store's cursors from those of any other.
  package static func makeEpoch() -> String {
    Identifiers.makeEpoch(random: UInt64.random(in: .min ... .max))
  }

  /// Reads the journal, if there is something in it; meanwhile every request is answered `store-unavailable`. `report`
  /// is called with the progress. Returns remarks for the operator; throws a `StoreError`.
  package func recover(report: @escaping (RecoveryProgress) -> Void) throws -> [String] {
    guard case .recovering = store.condition else { return [] }
    defer { parts.node.start(store) }
    return try Self.recover(parts, schemaText, report: report)
  }

  /// Makes the store read its journal, and follow from now on what other nodes append to it, if there are any.
  private static func recover(
    _ parts: ServerParts, _ schemaText: String?, report: @escaping (RecoveryProgress) -> Void = { _ in }
  ) throws -> [String] {
    let store = parts.store
    let remarks = try store.recover(schemaText: schemaText, report: report, restore: restoring(parts))
    parts.node.recovered(store)
    store.follow()
    return remarks
  }

  /// Reads the keys of tokens again.
  package func reloadKeys() { parts.access.reloadKeys(always: true) }

  /// Applies the settings that a running server can change: `log.access`, `access.requestsPerSecond`,
  /// `access.rateClients`, and `public`, which is opened again even under the same name. Throws if that is not a
  /// folder; then nothing changes.
  package func reload(_ configuration: Configuration) throws {
    try parts.files.serve(configuration.files.folder)
    accessLog?.set(configuration.accessLog)
    rates.set(configuration.access.rates)
  }

  /// Makes `/readyz` respond 503 `draining` from now on, while everything else goes on: for load balancers that are to
  /// stop sending requests here before `drain` begins.
  package func announceDraining() { parts.readiness.announceDraining() }

  /// The port that is listened on.
  package var port: UInt16 { http.port }

  /// Ends the server: new requests are refused, every stream gets `bye` and is ended, requests under way are answered.
  /// Streams and requests that have not ended within the seconds are cut: streams a little earlier, so that there is
  /// time left for the requests that waited for them. Takes longer only if a thread of the server is blocked.
  package func drain(seconds: Int = 8) {
    let budget = Duration.seconds(seconds)
    let deadline = ContinuousClock.now + budget
    // From here on requests are answered `draining`, except for those of operators.
    parts.readiness.beginDraining()
    parts.node.beginDraining()
    store.holdLeases()
    parts.hub.drain(until: deadline - min(.seconds(1), budget / 2))
    http.stop(until: deadline)
    parts.node.stop()
    // No request waits any more for what is still being computed.
    parts.readings.stop()
    parts.passwords.stop()
    parts.hub.stop()
    store.close()
  }

  // MARK: Conditions and metrics

  /// Notes a change in the condition of the store.
  private static func note(_ notice: StoreNotice, _ node: any Node, _ conditions: ConditionLog) {
    node.note(notice)
    switch notice {
    case .refusesWrites(let reason): conditions.set(.store, isActive: true, detail: reason)
    case .takesWrites: conditions.set(.store, isActive: false)
    case .refusesGrowth: conditions.note(.objects)
    case .snapshotFailed(let reason): conditions.set(.snapshots, isActive: true, detail: reason)
    case .snapshotWritten: conditions.set(.snapshots, isActive: false)
    case .cacheFailed(let reason): conditions.set(.cache, isActive: true, detail: reason)
    case .cacheWritten: conditions.set(.cache, isActive: false)
    }
  }

  /// Registers the metrics of conditions (how often each occurred, and whether it is active), of lost lines of the log,
  /// and of open connections.
  private static func collect(
    _ conditions: ConditionLog, _ log: LogOutput?, _ http: Server, in registry: PrometheusRegistry
  ) {
    registry.collect { [weak http] registry in
      for (condition, count) in conditions.counts {
        registry.set(.conditions, ["condition": condition.name], to: Double(count.total))
        registry.set(.activeConditions, ["condition": condition.name], to: count.isActive ? 1 : 0)
      }
      if let log { registry.set(.droppedLogLines, to: Double(log.droppedLines)) }
      if let http { registry.set(.connections, to: http.openConnections) }
    }
  }
}

extension Condition {
  /// A request was refused because its client sends too many.
  static let rate = Condition(
    "rate", "requests are refused: their clients send more than access.requestsPerSecond allows")
  /// The store takes no writes.
  fileprivate static let store = Condition(
    "store", "the store takes no writes, but still serves reads: check its disk", level: .critical)
  /// A write was refused because the objects take as much memory as they may.
  fileprivate static let objects = Condition(
    "objects", "writes that add to the objects are refused: they take as much memory as objects.bytes allows",
    level: .error)
  /// Snapshots cannot be written.
  fileprivate static let snapshots = Condition(
    "snapshots", "no snapshot can be written: the next start will take long, and old records stay", level: .error)
  /// A peer cannot write the part of the journal that it keeps.
  fileprivate static let cache = Condition(
    "cache", "this node's cache of the journal cannot be written: its next start reads all from the database",
    level: .warning)
}

/// Publishes commits to the streams, and then to the requests that wait for them.
private struct NodePublisher: StorePublisher {
  let streams: Streams
  let node: any Node

  func publish(
    _ queryEvents: [QueryEvent], upTo revision: Revision,
    notifying notify: (_ receive: (ObserverEvent) -> Void) -> Void
  ) -> Revision {
    defer { node.reached(revision) }
    return streams.publish(queryEvents, upTo: revision, notifying: notify)
  }
}

/// Performs the periodic work of the server, even if no request comes: forgets what is remembered of requests and has
/// become too old or too large, ends what is to end by itself, reads keys that have changed, and ends the streams of
/// owners that are no longer valid.
private final class Housekeeper: Sendable {
  /// Short enough that a stream ends within a second after the token that it was opened with.
  private static let interval = DispatchTimeInterval.milliseconds(500)

  private let parts: ServerParts
  private let rates: RequestRateLimiter
  private let queue = DispatchQueue(label: "keyway.housekeeper", qos: .utility)

  init(_ parts: ServerParts, rates: RequestRateLimiter) {
    (self.parts, self.rates) = (parts, rates)
  }

  /// Begins, and continues for as long as there is an owner.
  func start() {
    queue.asyncAfter(deadline: .now() + Self.interval) { [weak self] in
      guard let self else { return }
      sweep()
      start()
    }
  }

  private func sweep() {
    let (store, access, streams) = (parts.store, parts.access, parts.streams.registry)
    parts.pages.sweep(written: store.snapshot.writtenBytes)
    parts.idempotency.sweep()
    rates.sweep()
    access.reloadKeys()
    access.revocations.refresh()
    access.sessions.sweep(now: Int64(access.present * 1_000))
    parts.passwords.sweep()
    streams.sweepCutStreams()
    parts.node.endLeases(store, streams)
    streams.expire(streams.owners.takeInvalid(access.validity))
  }
}

/// The release of Keyway.
package enum Release {
  /// The version (semver.org), as `/v1/status` and `keyway --version` report it.
  package static let version = "0.1.0"
}
