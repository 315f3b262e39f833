import CMicrohttpd
import Glibc

/// A running libmicrohttpd daemon: one thread, and the connections that it serves.
///
/// `@unchecked Sendable`: the pointer is constant, `add` may be called by any thread, and `stop` is called once, by the
/// one call of `Server.stop(until:)` that counts.
final class Daemon: @unchecked Sendable {
  private let daemon: OpaquePointer
  /// Kept until the daemon has stopped, since its callbacks get an unretained pointer.
  private let context: ServerContext

  /// Starts the daemon's thread.
  init?(context: ServerContext) {
    let limits = context.limits
    var options = keyway_daemon()
    // The server's own limit is the effective one. libmicrohttpd counts a connection until its thread has forgotten it,
    // which may be after the next connection has its slot.
    options.connections = UInt32(clamping: 2 * limits.connections)
    options.idle_seconds = UInt32(limits.keepAliveSeconds)
    options.connection_memory = limits.headerBytes
    options.context = Unmanaged.passUnretained(context).toOpaque()
    options.connection_changed = connectionChanged
    options.request_begun = requestBegun
    options.request = handleRequest
    options.request_completed = requestCompleted
    guard let daemon = keyway_start_daemon(&options) else { return nil }
    self.daemon = daemon
    self.context = context
  }

  /// Makes the daemon serve a connection from now on, and close it. Any thread.
  func add(_ connection: AcceptedConnection) { connection.begin(on: daemon) }

  /// Closes all connections, none of which may be suspended, and waits for the thread.
  func stop() {
    MHD_stop_daemon(daemon)
  }
}

extension AcceptedConnection {
  /// Makes a daemon of libmicrohttpd serve the connection from now on, and close it. Any thread, including one on which
  /// this daemon makes a call.
  func begin(on daemon: OpaquePointer) {
    var peer = peer
    _ = withUnsafePointer(to: &peer) { peer in
      peer.withMemoryRebound(to: sockaddr.self, capacity: 1) { MHD_add_connection(daemon, descriptor, $0, peerLength) }
    }
  }
}

// MARK: Callbacks of libmicrohttpd

// Called on libmicrohttpd's own threads. `context` is the ServerContext that the Server keeps until the daemon has
// stopped; a socket context is a Connection, retained from its STARTED to its CLOSED notification.

/// Calls `body` with the server, without counting a reference: all threads would write to one count, and wait for each
/// other, at each call.
private func withServer<Result>(_ context: UnsafeMutableRawPointer, _ body: (ServerContext) -> Result) -> Result {
  Unmanaged<ServerContext>.fromOpaque(context)._withUnsafeGuaranteedRef(body)
}

private func connectionChanged(
  _ context: UnsafeMutableRawPointer?, _ mhdConnection: OpaquePointer?,
  _ socketContext: UnsafeMutablePointer<UnsafeMutableRawPointer?>?, _ change: MHD_ConnectionNotificationCode
) {
  guard let context, let mhdConnection, let socketContext else { return }
  if change == .CONNECTION_NOTIFY_STARTED {
    let connection = withServer(context) { $0.connectionOpened(DaemonConnection(mhdConnection)) }
    socketContext.pointee = connection.map { Unmanaged.passRetained($0).toOpaque() }
  } else if let opaque = socketContext.pointee {
    socketContext.pointee = nil
    withServer(context) { $0.connectionClosed(Unmanaged<Connection>.fromOpaque(opaque).takeRetainedValue()) }
  }
}

private func requestBegun(
  _ context: UnsafeMutableRawPointer?, _ target: UnsafePointer<CChar>?, _ mhdConnection: OpaquePointer?
) -> UnsafeMutableRawPointer? {
  guard let context, let connection = mhdConnection.flatMap({ DaemonConnection($0).holder }) else { return nil }
  withServer(context) { server in
    connection.begin(target: target.flatMap(requestTarget), limits: server.limits)
    if let log = server.accessLog, log.isWanted {
      connection.access = AccessEntry(log, client: connection.slot.address)
    }
  }
  target.map(hideParameters)
  return nil
}

private func handleRequest(
  _ context: UnsafeMutableRawPointer?, _ mhdConnection: OpaquePointer?, _ path: UnsafePointer<CChar>?,
  _ method: UnsafePointer<CChar>?, _ version: UnsafePointer<CChar>?, _ bytes: UnsafePointer<CChar>?,
  _ byteCount: UnsafeMutablePointer<Int>?,
  _ requestContext: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
) -> MHD_Result {
  guard let context, let daemonConnection = mhdConnection.map(DaemonConnection.init),
    let connection = daemonConnection.holder, let method, let byteCount
  else { return .NO }
  let part = UnsafeRawBufferPointer(start: bytes, count: bytes == nil ? 0 : byteCount.pointee)
  byteCount.pointee = 0
  let line = RequestLine(method: method, version: version)
  return withServer(context) { $0.advance(connection, daemonConnection, line, part) ? .YES : .NO }
}

private func requestCompleted(
  _ context: UnsafeMutableRawPointer?, _ mhdConnection: OpaquePointer?,
  _ requestContext: UnsafeMutablePointer<UnsafeMutableRawPointer?>?, _ reason: MHD_RequestTerminationCode
) {
  guard let context, let connection = mhdConnection.flatMap({ DaemonConnection($0).holder }) else { return }
  withServer(context) { connection.finish(limits: $0.limits) }
}

/// Cuts the target after its question mark, in memory that libmicrohttpd lends here: it would otherwise create a record
/// of each parameter. No one reads the records, they cost time, and if there is no room for all of them, 0.9.75 never
/// responds.
private func hideParameters(of target: UnsafePointer<CChar>) {
  guard let question = strchr(UnsafeMutablePointer(mutating: target), 0x3F), question[1] != 0 else { return }
  question[1] = 0
}

/// Returns the target, which the gate has validated, as text; nil if it is not UTF-8.
private func requestTarget(_ bytes: UnsafePointer<CChar>) -> String? { String(validatingCString: bytes) }
