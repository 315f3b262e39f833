import CMicrohttpd

/// A running libmicrohttpd daemon: one thread, and the connections that it serves.
///
/// `@unchecked Sendable`: the pointer is constant, `add` may be called by any thread, and `stop` is called once, by the
/// one call of `Server.stop(until:)` that counts.
final class DaemonHandle: @unchecked Sendable {
  private let daemon: OpaquePointer
  /// Kept until the daemon has stopped: its callbacks get an unretained pointer.
  private let context: ServerContext

  /// Starts the daemon's thread.
  init?(context: ServerContext) {
    let limits = context.limits
    var options = keyway_daemon()
    // Ours is the limit that counts. libmicrohttpd counts a connection until its thread has forgotten it, which may be
    // after the next has its place.
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

  /// Has the daemon serve a connection from now on, and close it. Any thread.
  func add(_ connection: AcceptedConnection) { connection.begin(on: daemon) }

  /// Closes all connections, none of which may be suspended, and waits for the thread.
  func stop() {
    MHD_stop_daemon(daemon)
  }
}
