import CMicrohttpd

/// A running libmicrohttpd daemon.
///
/// `@unchecked Sendable`: the pointer is constant, and `stop` is called once, by the one call of `Server.stop(until:)`
/// that counts.
final class DaemonHandle: @unchecked Sendable {
  private let daemon: OpaquePointer
  /// Kept until the daemon has stopped: its callbacks get an unretained pointer.
  private let context: ServerContext

  /// Starts the daemon's threads; it then owns the socket.
  init?(socket: Int32, context: ServerContext) {
    let limits = context.limits
    var options = keyway_daemon()
    options.listening_socket = socket
    options.threads = UInt32(limits.serverThreadCount)
    // libmicrohttpd divides this among its threads, and then stops accepting; ours is the limit that counts, so each
    // thread may have them all.
    options.connections = UInt32(clamping: limits.connections * limits.serverThreadCount)
    options.idle_seconds = UInt32(limits.keepAliveSeconds)
    options.connection_memory = limits.headerBytes
    options.context = Unmanaged.passUnretained(context).toOpaque()
    options.accept = acceptConnection
    options.connection_changed = connectionChanged
    options.request_begun = requestBegun
    options.request = handleRequest
    options.request_completed = requestCompleted
    guard let daemon = keyway_start_daemon(&options) else { return nil }
    self.daemon = daemon
    self.context = context
  }

  /// Closes the listening socket and all connections, none of which may be suspended, and waits for the threads.
  ///
  /// `MHD_quiesce_daemon` is not called before: in version 0.9.75 it aborts the process where a worker thread wakes
  /// while it runs, for both then take the socket out of the worker's epoll set.
  func stop() {
    MHD_stop_daemon(daemon)
  }
}
