import CMicrohttpd
import HTTPTypes
import Logging
import Synchronization

/// Everything that the threads of one running server share.
final class ServerContext: Sendable {
  let limits: ServerLimits
  let hub: StreamHub
  let handler: any RequestHandler
  let logger: Logger
  let limiter: ConnectionLimiter
  let registry = ConnectionRegistry()
  let lingering = LingeringCloses()
  let deferredResponses = DeferredResponses()
  let isDraining = Atomic<Bool>(false)

  init(limits: ServerLimits, hub: StreamHub, handler: any RequestHandler, logger: Logger) {
    self.limits = limits
    self.hub = hub
    self.handler = handler
    self.logger = logger
    limiter = ConnectionLimiter(limits)
  }

  func connectionOpened(descriptor: Int32, address: ClientAddress) -> Connection {
    let connection = Connection(descriptor: descriptor, slot: limiter.admit(address), server: self)
    connection.beginReceiving()
    registry.insert(connection)
    return connection
  }

  func connectionClosed(_ connection: Connection) {
    connection.endReceiving()
    registry.remove(connection)
  }

  /// One call of the access handler: what the exchange says is next, done. `false` makes libmicrohttpd close its
  /// descriptor of the connection.
  func advance(
    _ connection: Connection, _ mhdConnection: OpaquePointer, _ line: RequestLine, _ part: UnsafeRawBufferPointer
  ) -> Bool {
    let isBodyUnread = connection.exchange.phase == .begun
    let step =
      if connection.exchange.phase == .begun {
        connection.exchange.headerArrived(header(of: connection, mhdConnection, line))
      } else {
        connection.exchange.continued(byteCount: part.count)
      }
    switch step {
    case .proceed, .discard:
      if step == .discard { connection.body = [] }
      return true
    case .keep:
      connection.body.append(contentsOf: part)
      return true
    case .refuse(let fault):
      connection.work()
      if isBodyUnread, case .bodyTooLarge = fault {
        lingering.add(duplicateOf: connection.descriptor, now: MonotonicClock.milliseconds)
      }
      return send(handler.response(to: fault), on: mhdConnection)
    case .handle:
      connection.work()
      return handle(connection, mhdConnection, line)
    case .respondDeferred:
      return answer(connection, mhdConnection, line)
    case .close:
      return false
    }
  }

  /// Gives a connection that was suspended what it waited for.
  private func answer(_ connection: Connection, _ mhdConnection: OpaquePointer, _ line: RequestLine) -> Bool {
    switch connection.deferredResponse?.take() {
    case .response(let response)?:
      connection.exchange.responded()
      return send(response, on: mhdConnection)
    case .stream(let stream, let fields)?:
      return handOff(
        connection, mhdConnection, to: stream, fields,
        method: HTTPRequest.Method(requestLine: line.method) ?? .get, version: HTTPVersion(line.version))
    case nil:
      return false
    }
  }

  private func header(
    of connection: Connection, _ mhdConnection: OpaquePointer, _ line: RequestLine
  ) -> RequestHeader {
    if connection.target == nil { return RequestHeader(fault: .malformed(.target)) }
    if HTTPRequest.Method(requestLine: line.method) == nil { return RequestHeader(fault: .malformed(.method)) }
    return RequestHeader(of: mhdConnection)
  }

  private func handle(_ connection: Connection, _ mhdConnection: OpaquePointer, _ line: RequestLine) -> Bool {
    guard let target = connection.target, let method = HTTPRequest.Method(requestLine: line.method) else {
      return false
    }
    let version = HTTPVersion(line.version)
    let answer = handler.handle(
      Request(
        method: method, target: target, version: version, client: connection.slot.address,
        connection: mhdConnection, content: connection.body))
    connection.body = []
    switch answer {
    case .response(let response):
      connection.exchange.responded()
      return send(response, on: mhdConnection)
    case .deferred(let work):
      connection.exchange.suspended()
      let pending = DeferredResponse(connection: mhdConnection, all: deferredResponses)
      connection.deferredResponse = pending
      MHD_suspend_connection(mhdConnection)
      if deferredResponses.insert(pending) {
        work(Completion(pending, handler: handler))
      } else {
        pending.respond(.response(handler.response(to: .draining)))
      }
      return true
    case .stream(let stream, let fields):
      return handOff(connection, mhdConnection, to: stream, fields, method: method, version: version)
    }
  }
}
