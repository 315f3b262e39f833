import CSocketCalls
import Glibc
package import Logging
import Support
import Synchronization

/// An HTTP/1.x server on libmicrohttpd's threads.
///
/// A request that is not valid according to RFC 9112 never reaches libmicrohttpd: a `RequestGate` on each connection
/// asks the handler for the response to its fault, sends that, and ends the connection.
package final class Server: Sendable {
  /// The listening port, even if port 0 was requested; 0 if the server listens on a Unix domain socket.
  package let port: UInt16
  private let context: ServerContext
  private let daemons: [Daemon]
  private let acceptor: Acceptor
  private let sweeper: ConnectionSweeper
  private let socketFile: SocketFile?
  private let hasStopped = Locked(false)

  /// Accepts the connections of a socket, which it takes over, and already answers with `handler` before it returns.
  /// The soft limit of descriptors is raised to the hard one, and `limits.connections` lowered to what that allows. The
  /// streams that the handler answers with must be those of `hub`. The memory of bodies and responses is counted in
  /// `ledger`, whose limits `watch`, if there is one, adjusts from now on. Conditions are recorded in `conditions`,
  /// which the server sweeps; without it, the server creates a log of its own. Requests and streams that end are
  /// reported to `accessLog`. The proxies in `proxies` are trusted to name their clients.
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

  /// Stops the server: new connections are closed immediately, current requests are waited for, every response says
  /// that the connection closes, and the rest is closed. Shortly before the deadline, deferred requests are answered
  /// with the fault `draining`; at the deadline, requests are cut whose responses the client has not read. Returns when
  /// the server's threads have ended, which is after the deadline only if the handler delays one of them. The hub is
  /// not affected; its owner has drained it before. Only the first call has an effect.
  package func stop(until deadline: ContinuousClock.Instant) {
    let isFirst = hasStopped.withLock { hasStopped in
      defer { hasStopped = true }
      return !hasStopped
    }
    guard isFirst else { return }
    context.isDraining.store(true, ordering: .relaxed)
    // Clients that connect now find no server, rather than one that closes the connection.
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

  /// The time before the deadline at which the connections that wait for a deferred response are sent another one.
  private static let lastResponsesDuration = Duration.milliseconds(200)

  /// Answers the deferred requests. Afterwards no connection is suspended, which is required to stop the daemon.
  private func respondToDeferred() {
    let rest = context.deferredResponses.close()
    if !rest.isEmpty {
      context.logger.warning("stopping while requests wait for their answers", metadata: ["requests": "\(rest.count)"])
      let response = context.handler.response(to: .draining)
      for answer in rest { answer.respond(.response(response)) }
    }
    // Some may still be in use by threads that have answered and are about to resume the connection.
    while !context.deferredResponses.isEmpty { SystemThread.pause(milliseconds: 1) }
  }

  private func waitUntilIdle(until deadline: ContinuousClock.Instant) {
    while !context.deferredResponses.isEmpty || context.registry.isBusy {
      guard .now < deadline else { return }
      SystemThread.pause(milliseconds: 5)
    }
  }
}

/// The limits on everything that a client can make the server hold, and on how long.
package struct ServerLimits: Sendable {
  /// The maximum number of open TCP connections, including event streams. One more is closed as soon as it is accepted.
  /// Lowered at the start to what the descriptors of the process allow. The last eighth is for addresses with few
  /// connections.
  package var connections = 16_384
  /// The maximum number of open connections of one client address: seven eighths of `connections`.
  package var connectionsPerAddress = 14_336
  /// The number of leading bits of an IPv6 address that distinguish clients.
  package var ipv6PrefixBits = 64
  /// The number of bytes per second, of bodies and responses, that are transferred for one address while others make
  /// requests as well.
  package var bytesPerSecond = 268_435_456
  /// The share of the time of the threads that read requests for one address while others make requests as well, in
  /// percent; a trusted proxy has all of it.
  package var timePercent = 50
  /// The number of connections per second whose first request is read, counted in intervals of 1/500 second; a quarter
  /// of it while there are requests on connections that have begun before.
  package var beginningsPerSecond = 32_000
  /// The memory that libmicrohttpd may allocate for a connection, in bytes: the request line and all header lines have
  /// to fit, and the head of the response as well.
  package var headerBytes = 8_192
  /// The maximum length of a request body in bytes. A longer one is answered with the fault `bodyTooLarge`.
  package var bodyBytes = 1_048_576
  /// The maximum time that a client may take to send one request, from its first known byte to its last, in seconds.
  package var requestSeconds = 10
  /// The maximum time that a connection may stay open between two requests, in seconds.
  package var keepAliveSeconds = 75
  /// The number of threads that read requests and run the handler; half as many write to event streams. 0 means the
  /// number of cores.
  package var threads = 0
  /// The maximum number of open event streams.
  package var streams = 12_000
  /// The maximum number of open event streams of one client address: less than the total, so that one client never
  /// takes every stream.
  package var streamsPerAddress = 10_500
  /// The number of bytes that may wait for one slow reader before its stream starts to lag, or is ended with an
  /// overflow.
  package var pendingBytesPerStream = 262_144
  /// The time without progress, or to read its last events, after which a stream is cut, in seconds. A reader may well
  /// pause for a while: the data that waits for it is bounded.
  package var stallSeconds = 120
  /// The time of silence after which a stream is sent a heartbeat, in seconds.
  package var heartbeatSeconds = 15
  /// The time after which a stream is ended so that its client reconnects, in seconds; 0 means never.
  package var lifetimeSeconds = 0

  /// Creates the default limits.
  package init() {}

  /// Lowers the number of connections; the share of an address still leaves some to others.
  mutating func lowerConnections(to count: Int) {
    guard count < connections else { return }
    connectionsPerAddress = min(connectionsPerAddress, max(1, count / 8 * 7))
    connections = count
  }

  var threadCount: Int { threads > 0 ? threads : SystemThread.coreCount }

  /// The number of threads that write to event streams. The kernel delivers what they send on the other cores: on two
  /// cores with their subscribers, one thread told 1,000 of them in 4.3 ms and two in 5.6 ms (medians), and one made
  /// 2.7 million deliveries a second and two 2.0 million, with as many threads for requests.
  var streamThreadCount: Int { (threadCount + 1) / 2 }
}

/// An error that prevents a server or a hub from starting.
package enum HTTPServerError: Error, Equatable, CustomStringConvertible {
  /// The host is neither an address nor a name that resolves to one; the reason is the resolver's.
  case unknownHost(String, reason: String)
  /// Binding or listening failed with this `errno`.
  case cannotListen(host: String, port: UInt16, errno: Int32)
  /// A Unix domain socket could not be created, for this reason.
  case cannotListenAt(path: String, reason: String)
  /// A text does not denote a proxy.
  case noProxy(String)
  /// Memory, threads or descriptors ran out.
  case outOfResources

  /// The program was linked so that libmicrohttpd's calls bypass it, and requests would not be checked strictly.
  case readsUnchecked

  /// The error as text, for the operator.
  package var description: String {
    switch self {
    case .unknownHost(let host, let reason): "cannot resolve \(host): \(reason)"
    case .cannotListen(let host, let port, let errno):
      "cannot listen on \(host) port \(port): \(String(cString: strerror(errno)))"
    case .cannotListenAt(let path, let reason): "cannot listen on '\(path)': \(reason)"
    case .noProxy(let text):
      "access.proxies: '\(text)' is not an address, a range such as 10.0.0.0/8, or unix"
    case .readsUnchecked: "the program was linked wrongly: it must define recv for libmicrohttpd"
    case .outOfResources: "no memory, threads or descriptors left to start"
    }
  }
}
