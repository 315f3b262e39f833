import Glibc
import HTTPTypes
import Logging
import Support
import Synchronization

/// Everything that the threads of one running server share.
final class ServerContext: Sendable {
  let limits: ServerLimits
  let ledger: MemoryLedger
  let hub: StreamHub
  let handler: any RequestHandler
  let logger: Logger
  let limiter: ConnectionLimiter
  let registry = ConnectionRegistry()
  let lingering = LingeringCloses()
  let pacer: TrafficPacer
  let arrivals: ConnectionArrivals
  /// Has the sweeper look at once.
  let sweeperWake: WakeDescriptor
  let deferredResponses = DeferredResponses()
  private let requestIDs = RequestIDs(random: .random(in: .min ... .max))
  let conditions: ConditionLog
  let accessLog: (any AccessLog)?
  let proxies: TrustedProxies
  /// Whether it listens on a socket of this machine.
  let isLocal: Bool
  let isDraining = Atomic<Bool>(false)
  /// What the thread of each daemon works for.
  private let attentions = Locked<[Int: ThreadAttention]>([:])

  /// Nil where the system has no descriptor left.
  init?(
    limits: ServerLimits, ledger: MemoryLedger, hub: StreamHub, handler: any RequestHandler,
    conditions: ConditionLog, accessLog: (any AccessLog)?, proxies: TrustedProxies, isLocal: Bool, logger: Logger
  ) {
    guard let sweeperWake = WakeDescriptor() else { return nil }
    self.sweeperWake = sweeperWake
    self.limits = limits
    self.ledger = ledger
    self.hub = hub
    self.handler = handler
    self.conditions = conditions
    self.accessLog = accessLog
    self.proxies = proxies
    self.isLocal = isLocal
    self.logger = logger
    limiter = ConnectionLimiter(limits) { proxies.contains($0, isLocal: isLocal) }
    pacer = TrafficPacer(beginningsPerSecond: limits.beginningsPerSecond)
    arrivals = ConnectionArrivals(startingAtOnce: Acceptor.startingCount(threads: limits.threadCount))
  }

  /// The connection that is to be served next, where one may be.
  func nextConnection(now: Int64) -> AcceptedConnection? {
    guard !arrivals.isEmpty else { return nil }
    let nanoseconds = SystemClock.nanoseconds
    let connection = arrivals.next { pacer.mayBegin($0, now: now, nanoseconds: nanoseconds) }
    if let connection, pacer.hasCompany(now: now) { connection.slot.traffic.count(TrafficPacer.connectionBytes) }
    return connection
  }

  /// Whether clients of several addresses are there.
  var hasCompany: Bool { pacer.hasCompany(now: SystemClock.coarseMilliseconds) }

  private func attention(of daemon: OpaquePointer?) -> ThreadAttention {
    let number = Int(bitPattern: daemon)
    return attentions.withLock { attentions in
      if let known = attentions[number] { return known }
      let new = ThreadAttention()
      attentions[number] = new
      return new
    }
  }

  /// A daemon of libmicrohttpd has begun to serve a connection, and is given one that waits in its place. This does not
  /// wait for the acceptor, which may have to wait for a processor itself.
  func connectionOpened(_ daemonConnection: DaemonConnection) -> Connection? {
    let (descriptor, daemon) = (daemonConnection.descriptor, daemonConnection.daemon)
    guard let slot = arrivals.begun(descriptor) else { return nil }
    let connection = Connection(descriptor: descriptor, slot: slot, server: self, attention: attention(of: daemon))
    connection.attend()
    if let daemon { nextConnection(now: SystemClock.coarseMilliseconds)?.begin(on: daemon) }
    connection.beginReceiving()
    registry.insert(connection)
    return connection
  }

  func connectionClosed(_ connection: Connection) {
    connection.endReceiving()
    registry.remove(connection)
  }

  /// Whether a connection may be read at a moment, in milliseconds; otherwise its turn comes.
  func mayRead(_ connection: Connection, now: Int64) -> Bool {
    pacer.mayRead(connection, now: now, nanoseconds: { SystemClock.nanoseconds }) {
      sweeperWake.wake()
    }
  }

  /// One call of the access handler: what the exchange says is next, done. `false` makes libmicrohttpd close its
  /// descriptor of the connection.
  func advance(
    _ connection: Connection, _ daemonConnection: DaemonConnection, _ line: RequestLine, _ part: UnsafeRawBufferPointer
  ) -> Bool {
    let isBodyUnread = connection.exchange.hasJustBegun
    let step =
      if isBodyUnread {
        connection.exchange.headerArrived(headerArrived(connection, daemonConnection, line))
      } else {
        connection.exchange.continued(byteCount: part.count)
      }
    switch step {
    case .proceed: return true
    case .discard:
      connection.body = RequestBody()
      return true
    case .keep:
      keep(part, for: connection)
      return true
    case .refuse(let fault):
      connection.work()
      if case .memoryRefused = fault { conditions.note(.overload, client: connection.address) }
      if isBodyUnread, fault.leavesBodyUnread {
        lingering.add(duplicateOf: connection.descriptor, now: SystemClock.coarseMilliseconds)
      }
      return send(handler.response(to: fault), connection, daemonConnection)
    case .handle:
      connection.work()
      return handle(connection, daemonConnection, line)
    case .respondDeferred:
      connection.attend()
      return answer(connection, daemonConnection, line)
    case .close:
      return false
    }
  }

  /// Adds a part to the body, or begins to throw the body away where its client is given no more memory.
  private func keep(_ part: UnsafeRawBufferPointer, for connection: Connection) {
    do {
      try connection.body.append(part, limit: limits.bodyBytes, of: connection.network, in: ledger)
    } catch {
      connection.body = RequestBody()
      connection.exchange.refused(error)
    }
  }

  /// Gives a connection that was suspended what it waited for.
  private func answer(_ connection: Connection, _ daemonConnection: DaemonConnection, _ line: RequestLine) -> Bool {
    switch connection.deferredResponse?.take() {
    case .response(let response)?:
      if let retry = response.retry, connection.keepsBody {
        (connection.isHandledAgain, connection.outcome, connection.keepsBody) = (true, retry.outcome, false)
        return handle(connection, daemonConnection, line)
      }
      return respond(response, to: connection, daemonConnection, line)
    case .stream(let stream, let fields)?:
      return handOff(
        connection, daemonConnection, to: stream, fields, method: line.method ?? .get, version: line.version)
    case nil:
      return false
    }
  }

  private func headerArrived(
    _ connection: Connection, _ daemonConnection: DaemonConnection, _ line: RequestLine
  ) -> RequestHeader {
    var header = daemonConnection.header()
    connection.noteForwarding(proxies, isLocal: isLocal) { daemonConnection.field($0) }
    connection.fieldNames = header.names
    connection.requestID = header.requestID ?? requestIDs.next()
    let method = line.method
    if method == nil { header.fault = .malformed(.method) }
    if let access = connection.access {
      (access.record.id, access.record.method) = (connection.requestID, method?.rawValue)
    }
    if connection.target == nil { header.fault = .malformed(.target) }
    if header.fault == nil, let length = header.contentLength, length <= limits.bodyBytes {
      do {
        try connection.body.announce(length, of: connection.network, in: ledger)
      } catch {
        header.fault = .memoryRefused(error)
      }
    }
    return header
  }

  private func handle(_ connection: Connection, _ daemonConnection: DaemonConnection, _ line: RequestLine) -> Bool {
    guard let target = connection.target, let id = connection.requestID, let method = line.method else { return false }
    let answer = handler.handle(
      Request(
        id: id, method: method, target: target, holder: connection, connection: daemonConnection, ledger: ledger))
    if !connection.keepsBody { connection.body.clear() }
    switch consume answer {
    case .response(let response):
      return respond(response, to: connection, daemonConnection, line)
    case .deferred(let work):
      suspend(connection, daemonConnection) { work(Completion($0, handler: handler)) }
      return true
    case .stream(let stream, let fields):
      return handOff(connection, daemonConnection, to: stream, fields, method: method, version: line.version)
    }
  }

  /// Suspends a connection, and has `work` see to what it is resumed with.
  private func suspend(
    _ connection: Connection, _ daemonConnection: DaemonConnection, _ work: (DeferredResponse) -> Void
  ) {
    connection.exchange.suspended()
    let pending = DeferredResponse(
      connection: daemonConnection, all: deferredResponses, share: hasCompany ? connection.slot.time : nil)
    connection.deferredResponse = pending
    daemonConnection.suspend()
    if deferredResponses.insert(pending) {
      work(pending)
    } else {
      pending.respond(.response(handler.response(to: .draining)))
    }
  }
}

// MARK: Responding

extension ServerContext {
  /// Sends the handler's response, for whose body its client holds memory until libmicrohttpd has sent it. Without
  /// memory for it a reader gets the fault instead, and the sender of a request that was carried out the same response
  /// without its content: it must not hear that nothing happened.
  private func respond(
    _ response: consuming Response, to connection: Connection, _ daemonConnection: DaemonConnection, _ line: RequestLine
  ) -> Bool {
    connection.exchange.responded()
    connection.body = RequestBody()
    if response.isStreamHead {
      finish(&response, connection, daemonConnection)
      return sendHead(ofStream: response.fields, on: connection, line.version)
    }
    // Of a small one no memory is counted, and nothing is copied.
    guard response.body.count > MemoryLedger.uncountedBytes else { return send(response, connection, daemonConnection) }
    response = held(response, of: connection.client, at: connection.address) { line.method }
    return send(response, connection, daemonConnection)
  }

  /// A response with the memory for its body, or what is sent where there is none.
  func held(
    _ response: Response, of client: ClientAddress, at address: ClientAddress, method: () -> HTTPRequest.Method?
  ) -> Response {
    var response = response
    do {
      try response.hold(of: client, in: ledger)
    } catch {
      conditions.note(.overload, client: address)
      let method = method()
      if method == .get || method == .head || response.status.kind != .successful {
        response = handler.response(to: .memoryRefused(error))
      } else {
        response.dropBody()
      }
    }
    return response
  }

  /// Queues a response on a connection, on its own thread inside the access handler. `false` if libmicrohttpd does not
  /// take it.
  private func send(_ response: consuming Response, _ connection: Connection, _ daemonConnection: DaemonConnection)
    -> Bool
  {
    finish(&response, connection, daemonConnection)
    connection.access?.answered(response)
    connection.count(response.contentCount)
    connection.fileLease = response.file?.lease
    return daemonConnection.queue(response, id: connection.requestID, closes: isDraining.load(ordering: .relaxed))
  }

  /// Has the handler put into a response what only the request of a connection can say.
  private func finish(_ response: inout Response, _ connection: Connection, _ daemonConnection: DaemonConnection) {
    guard let id = connection.requestID else { return }
    handler.finish(&response, of: id) { daemonConnection.field("origin") }
  }

  /// Answers a request that libmicrohttpd never hears of, and ends the connection behind it. Every earlier request on
  /// it has been answered.
  func refuse(_ connection: Connection, _ fault: RequestFault, _ marks: HeadMarks?, hasBody: Bool) {
    let id = marks?.requestID ?? connection.requestID ?? requestIDs.next()
    var response = handler.response(to: fault)
    handler.finish(&response, of: id) { marks?.origin }
    if let access = connection.access {
      // libmicrohttpd has the head already, and ends the request when it closes the connection.
      access.answered(response)
    } else if let accessLog, accessLog.isWanted {
      let access = AccessEntry(accessLog, client: connection.slot.address)
      access.record.id = id
      access.answered(response)
      access.end()
    }
    close(connection, behind: ClosingAnswer.bytes(response, id: id, hasBody: hasBody))
  }

  /// Sends the last bytes of a connection, past libmicrohttpd, which then closes its descriptor.
  private func close(_ connection: Connection, behind bytes: [UInt8]) {
    let sent = bytes.withUnsafeBytes {
      Glibc.send(connection.descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
    }
    // A client that has left no room for some hundred bytes does not read answers.
    guard sent == bytes.count else { return }
    shutdown(connection.descriptor, Int32(SHUT_WR))
    lingering.add(duplicateOf: connection.descriptor, isAnswered: true, now: SystemClock.coarseMilliseconds)
  }

  /// Makes a stream of a connection: the hub gets a duplicate of the descriptor, and libmicrohttpd forgets its own as
  /// soon as `false` is returned, without shutting the socket down (that is what MHD_USE_TURBO changes).
  ///
  /// Better than a suspended connection, which keeps its whole memory, and which libmicrohttpd visits whenever any
  /// other connection of its thread is resumed.
  private func handOff(
    _ connection: Connection, _ daemonConnection: DaemonConnection, to stream: EventStream, _ fields: HTTPFields,
    method: HTTPRequest.Method, version: HTTPVersion
  ) -> Bool {
    guard method != .head else {
      hub.abandon(stream)
      connection.exchange.responded()
      return sendHead(ofStream: fields, on: connection, version)
    }
    let descriptor = fcntl(connection.descriptor, F_DUPFD_CLOEXEC, 0)
    guard descriptor >= 0 else {
      conditions.note(.descriptors, client: connection.address)
      hub.abandon(stream)
      connection.exchange.responded()
      return send(handler.response(to: .overloaded), connection, daemonConnection)
    }
    connection.exchange.handedOff()
    connection.access?.record.status = 200
    stream.worker.attach(
      stream.id,
      SocketHandoff(
        descriptor: descriptor, isChunked: version == .http11,
        head: StreamHead.bytes(fields, version: version, requestID: connection.requestID), slot: connection.slot,
        access: connection.access))
    connection.access = nil
    return false
  }

  /// Sends what a stream begins with and ends the connection, past libmicrohttpd, which would name a length, or send a
  /// chunk behind the head.
  private func sendHead(ofStream fields: HTTPFields, on connection: Connection, _ version: HTTPVersion) -> Bool {
    connection.access?.record.status = 200
    close(connection, behind: StreamHead.bytes(fields, version: version, requestID: connection.requestID))
    return false
  }
}
