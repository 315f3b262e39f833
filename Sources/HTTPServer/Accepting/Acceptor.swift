import Support

/// The thread that accepts connections, at once, and hands them to the threads of libmicrohttpd in turns of their
/// addresses.
///
/// libmicrohttpd would accept them itself, one after the other as they came and ten between two rounds of its work: a
/// client that opens connections faster than they are served fills the backlog of the kernel, and every other client
/// waits behind it.
final class Acceptor: Sendable {
  private let loop: AcceptLoop
  private let thread: SystemThread

  /// Starts the thread, which closes `listener` in the end; nil where the system has no thread or descriptor left, and
  /// then the caller keeps it.
  init?(listener: Int32, context: ServerContext, daemons: [DaemonHandle]) {
    guard let loop = AcceptLoop(listener: listener, context: context, daemons: daemons),
      let thread = SystemThread("keyway-accept", { loop.run() })
    else { return nil }
    (self.loop, self.thread) = (loop, thread)
  }

  /// Closes the listening socket and the connections that wait, and waits for the thread. Call once.
  func stop() {
    loop.end()
    thread.join()
  }
}
