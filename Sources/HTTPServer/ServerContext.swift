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
  /// Wakes the sweeper immediately.
  let sweeperWake: WakeDescriptor
  let deferredResponses = DeferredResponses()
  private let requestIDs = RequestIDs(random: .random(in: .min ... .max))
  let conditions: ConditionLog
  let accessLog: (any AccessLog)?
  let proxies: TrustedProxies
  /// True if the server listens on a Unix domain socket.
  let isLocal: Bool
  let isDraining = Atomic<Bool>(false)
  /// The accounting of each daemon's thread.
  private let attentions = Locked<[Int: ThreadAttention]>([:])

  /// Creates a context; nil if the system has no descriptor left.
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

  /// Returns the connection to serve next; nil if none may be served now.
  func nextConnection(now: Int64) -> AcceptedConnection? {
    guard !arrivals.isEmpty else { return nil }
    let nanoseconds = SystemClock.nanoseconds
    let connection = arrivals.next { pacer.mayBegin($0, now: now, nanoseconds: nanoseconds) }
    if let connection, pacer.hasOtherClients(now: now) { connection.slot.traffic.count(TrafficPacer.connectionBytes) }
    return connection
  }

  /// True if clients of several addresses are active.
  var hasOtherClients: Bool { pacer.hasOtherClients(now: SystemClock.coarseMilliseconds) }

  private func attention(of daemon: OpaquePointer?) -> ThreadAttention {
    let number = Int(bitPattern: daemon)
    return attentions.withLock { attentions in
      if let known = attentions[number] { return known }
      let new = ThreadAttention()
      attentions[number] = new
      return new
    }
  }

  /// Handles the start of a connection in a daemon of libmicrohttpd, which is also given the next waiting one. This
  /// does not wait for the acceptor, which may have to wait for a processor itself.
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

  /// Returns true if a connection may be read at a moment, in milliseconds; otherwise the pacer releases it later.
  func mayRead(_ connection: Connection, now: Int64) -> Bool {
    pacer.mayRead(connection, now: now, nanoseconds: { SystemClock.nanoseconds }) {
      sweeperWake.wake()
    }
  }

  /// Handles one call of the access handler: carries out the next step of the exchange. False makes libmicrohttpd close
  /// its descriptor of the connection.
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

  /// Appends a part to the body, or starts discarding the body if its client gets no more memory.
  private func keep(_ part: UnsafeRawBufferPointer, for connection: Connection) {
    do {
      try connection.body.append(part, limit: limits.bodyBytes, of: connection.network, in: ledger)
    } catch {
      connection.body = RequestBody()
      connection.exchange.refused(error)
    }
  }

  /// Sends a connection that was suspended the answer that it waited for.
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

  /// Suspends a connection, and calls `work`, which provides the answer with which it is resumed.
  private func suspend(
    _ connection: Connection, _ daemonConnection: DaemonConnection, _ work: (DeferredResponse) -> Void
  ) {
    connection.exchange.suspended()
    let pending = DeferredResponse(
      connection: daemonConnection, all: deferredResponses, share: hasOtherClients ? connection.slot.time : nil)
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
  /// Sends the handler's response, for whose body its client holds memory until libmicrohttpd has sent it. If there is
  /// no memory for it, a read gets the fault instead, and a write that was carried out gets the same response without
  /// its content, since it must not be reported as failed.
  private func respond(
    _ response: consuming Response, to connection: Connection, _ daemonConnection: DaemonConnection, _ line: RequestLine
  ) -> Bool {
    connection.exchange.responded()
    connection.body = RequestBody()
    if response.isStreamHead {
      finish(&response, connection, daemonConnection)
      return sendHead(ofStream: response.fields, on: connection, line.version)
    }
    // For a small one no memory is counted, and nothing is copied.
    guard response.body.count > MemoryLedger.uncountedBytes else { return send(response, connection, daemonConnection) }
    response = held(response, of: connection.client, at: connection.address) { line.method }
    return send(response, connection, daemonConnection)
  }

  /// Returns a response with the memory for its body, or the replacement to send if there is no memory.
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

  /// Queues a response on a connection, on its own thread inside the access handler. Returns false if libmicrohttpd
  /// does not accept it.
  private func send(_ response: consuming Response, _ connection: Connection, _ daemonConnection: DaemonConnection)
    -> Bool
  {
    finish(&response, connection, daemonConnection)
    connection.access?.answered(response)
    connection.count(response.contentCount)
    connection.fileLease = response.file?.lease
    return daemonConnection.queue(response, id: connection.requestID, closes: isDraining.load(ordering: .relaxed))
  }

  /// Makes the handler add the parts of a response that depend on the request of a connection.
  private func finish(_ response: inout Response, _ connection: Connection, _ daemonConnection: DaemonConnection) {
    guard let id = connection.requestID else { return }
    handler.finish(&response, of: id) { daemonConnection.field("origin") }
  }

  /// Answers a request that never reaches libmicrohttpd, and ends the connection after it. Every earlier request on it
  /// has been answered.
  func refuse(_ connection: Connection, _ fault: RequestFault, _ marks: HeadMarks?, hasBody: Bool) {
    let id = marks?.requestID ?? connection.requestID ?? requestIDs.next()
    var response = handler.response(to: fault)
    handler.finish(&response, of: id) { marks?.origin }
    if let access = connection.access {
      // libmicrohttpd already has the head, and ends the request when it closes the connection.
      access.answered(response)
    } else if let accessLog, accessLog.isWanted {
      let access = AccessEntry(accessLog, client: connection.slot.address)
      access.record.id = id
      access.answered(response)
      access.end()
    }
    close(connection, behind: ClosingAnswer.bytes(response, id: id, hasBody: hasBody))
  }

  /// Sends the last bytes of a connection, bypassing libmicrohttpd, which then closes its descriptor.
  private func close(_ connection: Connection, behind bytes: [UInt8]) {
    let sent = bytes.withUnsafeBytes {
      Glibc.send(connection.descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
    }
    // A client whose receive window has no room for a few hundred bytes does not read responses.
    guard sent == bytes.count else { return }
    shutdown(connection.descriptor, Int32(SHUT_WR))
    lingering.add(duplicateOf: connection.descriptor, isAnswered: true, now: SystemClock.coarseMilliseconds)
  }

  /// Turns a connection into a stream: the hub gets a duplicate of the descriptor, and libmicrohttpd forgets its own as
  /// soon as false is returned, without shutting the socket down (that is the effect of MHD_USE_TURBO).
  ///
  /// Better than a suspended connection, which keeps its whole memory, and which libmicrohttpd visits whenever any
  /// other connection of its thread is resumed.
  private func handOff(
    _ connection: Connection, _ daemonConnection: DaemonConnection, to stream: EventStream, _ fields: FieldSection,
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

  /// Sends the beginning of a stream and ends the connection, bypassing libmicrohttpd, which would state a length, or
  /// send a chunk after the head.
  private func sendHead(ofStream fields: FieldSection, on connection: Connection, _ version: HTTPVersion) -> Bool {
    connection.access?.record.status = 200
    close(connection, behind: StreamHead.bytes(fields, version: version, requestID: connection.requestID))
    return false
  }
}
