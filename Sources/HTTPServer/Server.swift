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
  private let daemons: [Daemon]
  private let acceptor: Acceptor
  private let sweeper: ConnectionSweeper
  private let socketFile: SocketFile?
  private let hasStopped = Locked(false)

  /// Accepts the connections of a socket, which it takes, and answers with `handler` before it returns. The soft limit
  /// of descriptors is raised to the hard one, and `limits.connections` lowered to what that allows. The streams that
  /// the handler answers with must be those of `hub`. The memory of bodies and responses is counted in `ledger`, whose
  /// limits `watch`, if there is one, adjusts from now on. Conditions are noted in `conditions`, without which the
  /// server makes a log of its own, and swept by the server; requests and streams that end are told to `accessLog`.
  /// What `proxies` say of their clients is believed.
  package init(
    socket: ListeningSocket, limits: ServerLimits, ledger: MemoryLedger, watch: MemoryWatch? = nil, hub: StreamHub,
    handler: some RequestHandler, logger: Logger, conditions: ConditionLog? = nil,
    accessLog: (any AccessLog)? = nil, proxies: TrustedProxies = .none
  ) throws(HTTPServerError) {
    guard keyway_calls_are_ours() else { throw .readsUnchecked }
    var limits = limits
    limits.lowerConnections(to: DescriptorLimit.raise(for: limits.connections, logger: logger))
    let context = ServerContext(
      limits: limits, ledger: ledger, hub: hub, handler: handler,
      conditions: conditions ?? ConditionLog(logger: logger), accessLog: accessLog, proxies: proxies,
      isLocal: socket.file != nil, logger: logger)
    guard let context, let sweeper = ConnectionSweeper(context, watch: watch) else { throw .outOfResources }
    socket.limitBuffers()
    guard let descriptor = socket.take() else {
      sweeper.stop()
      throw .outOfResources
    }
    let daemons = (0..<limits.threadCount).compactMap { _ in Daemon(context: context) }
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

/// A limit on everything a client can make the server hold, and on how long.
package struct ServerLimits: Sendable {
  /// How many TCP connections may be open, event streams included. One more is closed as soon as it is accepted.
  /// Lowered at the start to what the descriptors of the process allow. The last eighth is for addresses with few.
  package var connections = 16_384
  /// The same for one client address: seven eighths.
  package var connectionsPerAddress = 14_336
  /// The number of first bits of an IPv6 address that tell one client from another.
  package var ipv6PrefixBits = 64
  /// How many bytes a second of one address, bodies and answers, are dealt with while others make requests as well.
  package var bytesPerSecond = 268_435_456
  /// How much of the time of the threads that read requests one address has while others make requests as well, in
  /// percent; a trusted proxy has all of it.
  package var timePercent = 50
  /// How many connections a second have their first request read, counted by five-hundredths of a second; a quarter of
  /// it while there are requests on connections that have begun before.
  package var beginningsPerSecond = 32_000
  /// What libmicrohttpd may allocate for a connection: the request line and all header lines have to fit, and the head
  /// of the response too.
  package var headerBytes = 8_192
  /// The longest request body. A longer one is answered with the fault `bodyTooLarge`.
  package var bodyBytes = 1_048_576
  /// How long a client may take to send one request, from its first known byte to its last.
  package var requestSeconds = 10
  /// How long a connection may stay open between two requests.
  package var keepAliveSeconds = 75
  /// Threads that read requests and run the handler, and as many that write to event streams; 0 means as many as there
  /// are cores.
  package var threads = 0
  /// How many event streams may be open at once.
  package var streams = 12_000
  /// The same for one client address: less than all, so that one client never takes every stream.
  package var streamsPerAddress = 10_500
  /// What may wait for one slow reader before its stream turns to lagging, or is ended as overflowed.
  package var pendingBytesPerStream = 262_144
  /// How long a stream may make no progress, or take to read its last events, before it is cut. A reader may well look
  /// away for a while: what waits for it is bounded.
  package var stallSeconds = 120
  /// After how long a silence a stream is sent a heartbeat.
  package var heartbeatSeconds = 15
  /// After how long a stream is ended so that its client comes back; 0 means never.
  package var lifetimeSeconds = 0

  /// The defaults.
  package init() {}

  /// Makes do with fewer connections; an address keeps a share of them that leaves some to others.
  mutating func lowerConnections(to count: Int) {
    guard count < connections else { return }
    connectionsPerAddress = min(connectionsPerAddress, max(1, count / 8 * 7))
    connections = count
  }

  var threadCount: Int { threads > 0 ? threads : SystemThread.coreCount }
}

/// Why a server or a hub did not start.
package enum HTTPServerError: Error, Equatable, CustomStringConvertible {
  /// The host is neither an address nor a name that leads to one; the text is the resolver's.
  case unknownHost(String, reason: String)
  /// Binding or listening failed with this `errno`.
  case cannotListen(host: String, port: UInt16, errno: Int32)
  /// A socket of this machine could not be made, for this reason.
  case cannotListenAt(path: String, reason: String)
  /// A text names no proxy.
  case noProxy(String)
  /// Memory, threads or descriptors ran out.
  case outOfResources

  /// The program was linked so that libmicrohttpd's calls go past it, and requests would not be read strictly.
  case readsUnchecked

  /// For the operator.
  package var description: String {
    switch self {
    case .unknownHost(let host, let reason): "cannot resolve \(host): \(reason)"
    case .cannotListen(let host, let port, let errno):
      "cannot listen on \(host) port \(port): \(String(cString: strerror(errno)))"
    case .cannotListenAt(let path, let reason): "cannot listen on '\(path)': \(reason)"
    case .noProxy(let text):
      "access.proxies: '\(text)' is no address, no range such as 10.0.0.0/8, and not unix"
    case .readsUnchecked: "the program was linked wrongly: it must define recv for libmicrohttpd"
    case .outOfResources: "no memory, threads or descriptors left to start"
    }
  }
}
