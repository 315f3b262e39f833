import CSocketCalls
import Glibc
import Support
import Synchronization

/// The thread that accepts connections immediately, and hands them to the threads of libmicrohttpd in round-robin order
/// of their addresses.
///
/// libmicrohttpd would accept them itself, in the order of arrival and ten between two rounds of its work: a client
/// that opens connections faster than they are served would fill the kernel's backlog, and every other client would
/// wait behind it.
final class Acceptor: Sendable {
  /// The number of connections accepted before some are handed on. Accepting costs little compared with serving, so
  /// that the kernel's backlog, in which all clients wait in order of arrival, is soon empty.
  private static let batchCount = 1_024
  /// The maximum number of connections that a thread of libmicrohttpd is given before it has begun them.
  private static let startingPerThread = 8
  /// The time for which the thread sleeps while connections wait for the next share of their addresses, in
  /// milliseconds.
  private static let pauseMilliseconds = Int32(TrafficShare.timeTickMilliseconds)

  private let listener: Int32
  private let context: ServerContext
  private let daemons: [Daemon]
  private let wake: WakeDescriptor
  private let isFinished = Atomic<Bool>(false)
  private let thread = Locked<SystemThread?>(nil)

  /// Starts the thread, which closes `listener` at the end; nil if the system has no thread or descriptor left, in
  /// which case the caller keeps it.
  init?(listener: Int32, context: ServerContext, daemons: [Daemon]) {
    guard let wake = WakeDescriptor() else { return nil }
    (self.listener, self.context, self.daemons, self.wake) = (listener, context, daemons, wake)
    guard let started = SystemThread("keyway-accept", { [self] in run() }) else { return nil }
    thread.withLock { $0 = started }
  }

  /// Returns the maximum number of connections that so many threads may hold before they have begun them.
  static func startingCount(threads: Int) -> Int { threads * startingPerThread }

  /// Closes the listening socket and the waiting connections, and waits for the thread. Call once.
  func stop() {
    isFinished.store(true, ordering: .relaxed)
    wake.wake()
    thread.withLock { $0 }?.join()
  }

  /// Accepts connections and hands them on until the end.
  private func run() {
    var spare = SpareDescriptor()
    var turn = 0
    while !isFinished.load(ordering: .relaxed) {
      awaitWork()
      for _ in 0..<Self.batchCount {
        guard acceptOne(&spare) else { break }
      }
      let now = SystemClock.coarseMilliseconds
      while let connection = context.nextConnection(now: now) {
        daemons[turn % daemons.count].add(connection)
        turn += 1
      }
    }
    close(listener)
    for connection in context.arrivals.close() { close(connection.descriptor) }
  }

  /// Waits until there is a connection to accept, or a waiting one may be handed on.
  private func awaitWork() {
    let milliseconds = context.arrivals.isEmpty ? -1 : Self.pauseMilliseconds
    withUnsafeTemporaryAllocation(of: pollfd.self, capacity: 2) { entries in
      entries[0] = pollfd(fd: listener, events: Int16(POLLIN), revents: 0)
      entries[1] = pollfd(fd: wake.descriptor, events: Int16(POLLIN), revents: 0)
      poll(entries.baseAddress, 2, milliseconds)
      if entries[1].revents != 0 { wake.reset() }
    }
  }

  /// Accepts a connection, which is queued, or closed if the limits leave no place for it. Returns false if there is no
  /// connection.
  private func acceptOne(_ spare: inout SpareDescriptor) -> Bool {
    var peer = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let descriptor = keyway_accept(listener, &peer, &length)
    guard descriptor >= 0 else { return recover(from: errno, &spare) }
    guard spare.isKept() else {
      close(descriptor)
      context.conditions.note(.descriptors)
      return true
    }
    let client = withUnsafePointer(to: &peer) { peer in
      peer.withMemoryRebound(to: sockaddr.self, capacity: 1) { ClientAddress($0) }
    }
    if context.isDraining.load(ordering: .relaxed) {
      close(descriptor)
    } else if let slot = context.limiter.admit(client) {
      context.arrivals.add(AcceptedConnection(descriptor: descriptor, slot: slot, peer: peer, peerLength: length))
    } else {
      close(descriptor)
      context.conditions.note(.connections, client: client)
    }
    return true
  }

  /// Handles an error of accept(2). Returns true if the caller should retry immediately.
  private func recover(from error: Int32, _ spare: inout SpareDescriptor) -> Bool {
    switch error {
    case EAGAIN: return false
    case EMFILE, ENFILE:
      if spare.closeNext(of: listener) {
        context.conditions.note(.descriptors)
        return true
      }
    // Errors of connections that ended before they were accepted (accept(2)).
    case ECONNABORTED, EINTR, EPROTO, ENETDOWN, ENOPROTOOPT, EHOSTDOWN, ENONET, EHOSTUNREACH, EOPNOTSUPP, ENETUNREACH:
      return true
    default: break
    }
    // The socket stays readable, so the next call would fail in the same way immediately.
    SystemThread.pause(milliseconds: 5)
    return false
  }
}

/// A descriptor in reserve for the moment when none is left: it is closed to accept the waiting connection, which is
/// then closed, and reopened. Without it, accept(2) would fail as long as no descriptor is left, while its socket stays
/// readable. Used by one thread.
private struct SpareDescriptor: ~Copyable {
  private var descriptor: Int32 = -1

  /// Opens the reserve.
  init() {
    descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC)
  }

  deinit {
    if descriptor >= 0 { close(descriptor) }
  }

  /// Returns true if there is a reserve. Another thread may have opened a file while the reserve was closed: it is then
  /// reopened before any connection is accepted, since the following ones could otherwise not even be closed.
  mutating func isKept() -> Bool {
    if descriptor < 0 { descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC) }
    return descriptor >= 0
  }

  /// Accepts the waiting connection in place of the reserve, and closes it. Returns false if none waits, or if another
  /// thread took the descriptor first.
  mutating func closeNext(of listener: Int32) -> Bool {
    if descriptor >= 0 { close(descriptor) }
    let connection = accept(listener, nil, nil)
    if connection >= 0 { close(connection) }
    descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC)
    return connection >= 0
  }
}
