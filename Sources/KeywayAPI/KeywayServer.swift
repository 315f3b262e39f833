package import HTTPServer
package import KeyValueModel
package import Logging
package import ModelStore

/// The whole server put together: a store, its streams, and the HTTP side of both.
///
/// Order of life: the parts are made from the inside out and serve as soon as the initializer returns; `drain` ends them
/// from the outside in, once.
package final class KeywayServer: Sendable {
  /// Everything that can be set.
  package struct Configuration: Sendable {
    /// The address to listen on.
    package var host = "127.0.0.1"
    /// The port; 0 takes a free one.
    package var port: UInt16 = 8080
    /// Names under which the server answers besides its address and the loopback names.
    package var names: [String] = []
    /// Bounds of the store.
    package var store = StoreLimits()
    /// Bounds of HTTP and the streams' connections.
    package var server = ServerLimits()
    /// Bounds of what streams observe.
    package var streams = StreamLimits()
    /// Bounds of fetches.
    package var pages = PageStore.Limits()
    /// Bounds of what one request may ask for.
    package var requests = RequestLimits()
    /// Bounds of what is remembered of requests with an `Idempotency-Key`.
    package var idempotency = IdempotencyMemory.Limits()

    /// The defaults.
    package init() {}
  }

  /// Where the objects are.
  package let store: ModelStore
  private let api: KeywayAPI
  private let hub: StreamHub
  private let http: HTTPServer

  /// Starts serving an empty store; `prepare` may fill it before the first connection is taken. `now` gives the seconds,
  /// which only grow, by which pages and idempotency keys age.
  package init(
    schema: Schema, configuration: Configuration, logger: Logger,
    prepare: (ModelStore) throws -> Void = { _ in },
    now: @escaping @Sendable () -> UInt64 = { Identifiers.monotonicSeconds }
  ) throws {
    let random: @Sendable () -> UInt64 = { UInt64.random(in: .min ... .max) }
    let registry = PrometheusRegistry()
    hub = StreamHub(limits: configuration.server, logger: logger)
    let epoch = Identifiers.makeEpoch(random: random())
    let streams = StreamRegistry(hub: hub, epoch: epoch, limits: configuration.streams, random: random)
    store = ModelStore(schema: schema, epoch: epoch, limits: configuration.store, publisher: streams)
    let pages = PageStore(limits: configuration.pages, now: now, random: random)
    api = KeywayAPI(
      store: store, streams: streams, hub: hub, pages: pages,
      idempotency: IdempotencyStore(limits: configuration.idempotency, now: now),
      limits: configuration.requests,
      hosts: HostNames(host: configuration.host, others: configuration.names, port: configuration.port),
      registry: registry, logger: logger,
      makeID: { Identifiers.makeUUIDv7(milliseconds: Identifiers.epochMilliseconds, random: (random(), random())) })
    try prepare(store)
    try hub.start(delegate: api)
    do {
      http = try HTTPServer(
        host: configuration.host, port: configuration.port, limits: configuration.server, hub: hub, handler: api,
        logger: logger)
    } catch {
      hub.stop()
      throw error
    }
  }

  /// The port that is listened on.
  package var port: UInt16 { http.port }

  /// Ends the server: new requests are refused, every stream gets `bye` and is ended, requests under way are answered.
  /// What has not come to its end within the seconds is cut: streams a little earlier, so that there is time left for the
  /// requests that waited for them. Takes longer only if a thread of the server is held up.
  package func drain(seconds: Int = 8) {
    let budget = Duration.seconds(seconds)
    let deadline = ContinuousClock.now + budget
    api.beginDraining()
    hub.drain(until: deadline - min(.seconds(1), budget / 2))
    http.stop(until: deadline)
    hub.stop()
  }
}
