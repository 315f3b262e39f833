import CMicrohttpd
import CSocketCalls
import Glibc
package import Logging
import Support
import Synchronization

/// An HTTP/1.x server on libmicrohttpd's threads.
///
/// What is no request as RFC 9112 has it never reaches libmicrohttpd: a `RequestGate` on each connection asks the
/// handler for the response to its fault, sends that, and ends the connection.
package final class Server: Sendable {
  /// The port it listens on, also where port 0 was asked for; 0 where it listens on a file.
  package let port: UInt16
  private let context: ServerContext
  private let daemons: [DaemonHandle]
  private let acceptor: Acceptor
  private let sweeper: ConnectionSweeper
  private let socketFile: SocketFile?
  private let hasStopped = Locked(false)

  /// Listens on an address, and answers with `handler` before it returns. `host` is a numeric address or a name; port 0
  /// takes a free one. For the rest see the other initializer.
  package convenience init(
    host: String, port: UInt16, limits: ServerLimits, ledger: MemoryLedger, hub: StreamHub,
    handler: some RequestHandler, logger: Logger
  ) throws(HTTPServerError) {
    let socket = try ListeningSocket(host: host, port: port)
    try self.init(socket: socket, limits: limits, ledger: ledger, hub: hub, handler: handler, logger: logger)
  }

  /// Accepts the connections of a socket, which it takes, and answers with `handler` before it returns. The soft limit
  /// of descriptors is raised to the hard one, and `limits.connections` lowered to what that allows. The streams that
  /// the handler answers with must be those of `hub`. The memory of bodies and responses is counted in `ledger`, whose
  /// limits `watch`, if there is one, adjusts from now on. Conditions are noted in `conditions`, without which the
  /// server makes a log of its own, and swept by the server; requests and streams that end are told to `accessLog`.
  /// What `proxies` say of their clients is believed. The ids that the server makes for requests begin with a word made
  /// of `random`.
  package init(
    socket: ListeningSocket, limits: ServerLimits, ledger: MemoryLedger, watch: MemoryWatch? = nil, hub: StreamHub,
    handler: some RequestHandler, logger: Logger, conditions: ConditionLog? = nil,
    accessLog: (any AccessLog)? = nil, proxies: TrustedProxies = .none, random: UInt64 = .random(in: .min ... .max)
  ) throws(HTTPServerError) {
    guard keyway_calls_are_ours() else { throw .readsUnchecked }
    var limits = limits
    limits.lowerConnections(to: DescriptorLimit.raise(for: limits.connections, logger: logger))
    let context = ServerContext(
      limits: limits, ledger: ledger, hub: hub, handler: handler, requestIDs: RequestIDs(random: random),
      conditions: conditions ?? ConditionLog(logger: logger), accessLog: accessLog, proxies: proxies,
      isLocal: socket.file != nil, logger: logger)
    guard let context, let sweeper = ConnectionSweeper(context, watch: watch) else { throw .outOfResources }
    socket.limitBuffers(unsentBytes: limits.unsentBytes, unreadBytes: limits.unreadBytes)
    guard let descriptor = socket.take() else {
      sweeper.stop()
      throw .outOfResources
    }
    let daemons = (0..<limits.serverThreadCount).compactMap { _ in DaemonHandle(context: context) }
    guard !daemons.isEmpty, let acceptor = Acceptor(listener: descriptor, context: context, daemons: daemons) else {
      for daemon in daemons { daemon.stop() }
      sweeper.stop()
      close(descriptor)
      throw .outOfResources
    }
    self.port = socket.port
    socketFile = socket.file
    self.context = context
    self.daemons = daemons
    self.acceptor = acceptor
    self.sweeper = sweeper
  }

  deinit {
    stop(until: .now)
  }

  /// The number of open TCP connections, event streams included. Any thread.
  package var openConnections: Int { context.limiter.count }

  /// Stops: a new connection is closed at once, requests under way are waited for, every response says that the
  /// connection closes, and the rest is closed. Shortly before the deadline deferred requests are answered with the
  /// fault `draining`; at the deadline requests are cut whose answers the client has not taken. Returns when the
  /// server's threads have ended, after the deadline only if one of them is held up in the handler. The hub is not
  /// touched; its owner has drained it before. The first call counts.
  package func stop(until deadline: ContinuousClock.Instant) {
    let isFirst = hasStopped.withLock { hasStopped in
      defer { hasStopped = true }
      return !hasStopped
    }
    guard isFirst else { return }
    context.isDraining.store(true, ordering: .relaxed)
    // Who comes now finds no server, rather than one that closes the connection.
    socketFile?.remove()
    waitUntilIdle(until: deadline - Self.lastResponsesDuration)
    respondToDeferred()
    waitUntilIdle(until: deadline)
    let count = context.registry.cutBusy()
    if count > 0 { context.logger.warning("cut requests under way", metadata: ["requests": "\(count)"]) }
    acceptor.stop()
    for daemon in daemons { daemon.stop() }
    context.arrivals.forgetStarting()
    sweeper.stop()
  }

  /// How long before the deadline the connections that wait for a deferred response are sent another one.
  private static let lastResponsesDuration = Duration.milliseconds(200)

  /// From here on no connection is suspended, as is needed for stopping the daemon.
  private func respondToDeferred() {
    let rest = context.deferredResponses.close()
    if !rest.isEmpty {
      context.logger.warning("stopping while requests wait for their answers", metadata: ["requests": "\(rest.count)"])
      let response = context.handler.response(to: .draining)
      for answer in rest { answer.respond(.response(response)) }
    }
    // Some may be in the hands of threads that have answered and are about to resume the connection.
    while !context.deferredResponses.isEmpty { SystemThread.pause(milliseconds: 1) }
  }

  private func waitUntilIdle(until deadline: ContinuousClock.Instant) {
    while !context.deferredResponses.isEmpty || context.registry.isBusy {
      guard .now < deadline else { return }
      SystemThread.pause(milliseconds: 5)
    }
  }
}
