import CMicrohttpd
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
  let requestIDs: RequestIDs
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
    limits: ServerLimits, ledger: MemoryLedger, hub: StreamHub, handler: any RequestHandler, requestIDs: RequestIDs,
    conditions: ConditionLog, accessLog: (any AccessLog)?, proxies: TrustedProxies, isLocal: Bool, logger: Logger
  ) {
    guard let sweeperWake = WakeDescriptor() else { return nil }
    self.sweeperWake = sweeperWake
    self.limits = limits
    self.ledger = ledger
    self.hub = hub
    self.handler = handler
    self.requestIDs = requestIDs
    self.conditions = conditions
    self.accessLog = accessLog
    self.proxies = proxies
    self.isLocal = isLocal
    self.logger = logger
    limiter = ConnectionLimiter(limits) { proxies.contains($0, isLocal: isLocal) }
    pacer = TrafficPacer(beginningsPerSecond: limits.beginningsPerSecond)
    arrivals = ConnectionArrivals(startingAtOnce: Acceptor.startingCount(threads: limits.serverThreadCount))
  }

  /// The connection that is to be served next, where one may be.
  func nextConnection(now: Int64) -> AcceptedConnection? {
    guard !arrivals.isEmpty else { return nil }
    let nanoseconds = MonotonicClock.nanoseconds
    let connection = arrivals.next { pacer.mayBegin($0, now: now, nanoseconds: nanoseconds) }
    if let connection, pacer.hasCompany(now: now) { connection.slot.traffic.count(TrafficPacer.connectionBytes) }
    return connection
  }

  /// Whether clients of several addresses are there.
  var hasCompany: Bool { pacer.hasCompany(now: MonotonicClock.milliseconds) }

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
  func connectionOpened(descriptor: Int32, daemon: OpaquePointer?) -> Connection? {
    guard let slot = arrivals.begun(descriptor) else { return nil }
    let connection = Connection(descriptor: descriptor, slot: slot, server: self, attention: attention(of: daemon))
    connection.attend()
    if let daemon { nextConnection(now: MonotonicClock.milliseconds)?.begin(on: daemon) }
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
    pacer.mayRead(connection, now: now, nanoseconds: { MonotonicClock.nanoseconds }) {
      sweeperWake.wake()
    }
  }

  /// One call of the access handler: what the exchange says is next, done. `false` makes libmicrohttpd close its
  /// descriptor of the connection.
  func advance(
    _ connection: Connection, _ mhdConnection: OpaquePointer, _ line: RequestLine, _ part: UnsafeRawBufferPointer
  ) -> Bool {
    let isBodyUnread = connection.exchange.hasJustBegun
    let step =
      if isBodyUnread {
        connection.exchange.headerArrived(headerArrived(connection, mhdConnection, line))
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
        lingering.add(duplicateOf: connection.descriptor, now: MonotonicClock.milliseconds)
      }
      return send(handler.response(to: fault), connection, mhdConnection)
    case .handle:
      connection.work()
      return handle(connection, mhdConnection, line)
    case .respondDeferred:
      connection.attend()
      return answer(connection, mhdConnection, line)
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
  private func answer(_ connection: Connection, _ mhdConnection: OpaquePointer, _ line: RequestLine) -> Bool {
    switch connection.deferredResponse?.take() {
    case .response(let response)?:
      if let retry = response.retry, connection.keepsBody {
        (connection.isPostponed, connection.outcome) = (true, retry.outcome)
        return handle(connection, mhdConnection, line)
      }
      return respond(response, to: connection, mhdConnection, line)
    case .stream(let stream, let fields)?:
      return handOff(
        connection, mhdConnection, to: stream, fields,
        method: HTTPRequest.Method(requestLine: line.method) ?? .get, version: HTTPVersion(line.version))
    case .again(let outcome)?:
      connection.outcome = outcome
      return handle(connection, mhdConnection, line)
    case nil:
      return false
    }
  }

  private func headerArrived(
    _ connection: Connection, _ mhdConnection: OpaquePointer, _ line: RequestLine
  ) -> RequestHeader {
    var header = RequestHeader(of: mhdConnection)
    connection.noteForwarding(proxies, isLocal: isLocal) { headerField($0, of: mhdConnection) }
    connection.fieldNames = header.names
    connection.requestID = header.requestID ?? requestIDs.next()
    let method = HTTPRequest.Method(requestLine: line.method)
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

  private func handle(_ connection: Connection, _ mhdConnection: OpaquePointer, _ line: RequestLine) -> Bool {
    guard let target = connection.target, let id = connection.requestID,
      let method = HTTPRequest.Method(requestLine: line.method)
    else { return false }
    let version = HTTPVersion(line.version)
    let answer = handler.handle(
      Request(
        id: id, method: method, target: target, version: version, holder: connection, connection: mhdConnection,
        ledger: ledger))
    if case .postponed = answer {
      connection.isPostponed = true
    } else if !connection.keepsBody {
      connection.body.clear()
    }
    switch consume answer {
    case .response(let response):
      return respond(response, to: connection, mhdConnection, line)
    case .deferred(let work):
      suspend(connection, mhdConnection) { work(Completion($0, handler: handler)) }
      return true
    case .postponed(let wait):
      suspend(connection, mhdConnection) { wait(Postponement($0)) }
      return true
    case .stream(let stream, let fields):
      return handOff(connection, mhdConnection, to: stream, fields, method: method, version: version)
    }
  }

  /// Suspends a connection, and has `work` see to what it is resumed with.
  private func suspend(_ connection: Connection, _ mhdConnection: OpaquePointer, _ work: (DeferredResponse) -> Void) {
    connection.exchange.suspended()
    let pending = DeferredResponse(
      connection: mhdConnection, all: deferredResponses, share: hasCompany ? connection.slot.time : nil)
    connection.deferredResponse = pending
    MHD_suspend_connection(mhdConnection)
    if deferredResponses.insert(pending) {
      work(pending)
    } else {
      pending.respond(.response(handler.response(to: .draining)))
    }
  }
}
