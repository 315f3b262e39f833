import CSocketCalls
import Glibc
import Support
import Synchronization

/// The thread that accepts connections, at once, and hands them to the threads of libmicrohttpd in turns of their
/// addresses.
///
/// libmicrohttpd would accept them itself, one after the other as they came and ten between two rounds of its work: a
/// client that opens connections faster than they are served fills the backlog of the kernel, and every other client
/// waits behind it.
final class Acceptor: Sendable {
  /// How many connections are accepted before some are handed on. That costs little beside serving one, so that the
  /// backlog of the kernel, in which all clients wait in the order of coming, is soon empty.
  private static let batchCount = 1_024
  /// How many connections a thread of libmicrohttpd is given before it has begun them.
  private static let startingPerThread = 8
  /// How long the thread sleeps where connections wait for their addresses' next share.
  private static let pauseMilliseconds = Int32(TrafficShare.timeTickMilliseconds)

  private let listener: Int32
  private let context: ServerContext
  private let daemons: [Daemon]
  private let wake: WakeDescriptor
  private let isOver = Atomic<Bool>(false)
  private let thread = Locked<SystemThread?>(nil)

  /// Starts the thread, which closes `listener` in the end; nil where the system has no thread or descriptor left, and
  /// then the caller keeps it.
  init?(listener: Int32, context: ServerContext, daemons: [Daemon]) {
    guard let wake = WakeDescriptor() else { return nil }
    (self.listener, self.context, self.daemons, self.wake) = (listener, context, daemons, wake)
    guard let started = SystemThread("keyway-accept", { [self] in run() }) else { return nil }
    thread.withLock { $0 = started }
  }

  /// How many connections may be with so many threads before they have begun them.
  static func startingCount(threads: Int) -> Int { threads * startingPerThread }

  /// Closes the listening socket and the connections that wait, and waits for the thread. Call once.
  func stop() {
    isOver.store(true, ordering: .relaxed)
    wake.wake()
    thread.withLock { $0 }?.join()
  }

  /// Accepts and hands on until the end.
  private func run() {
    var spare = SpareDescriptor()
    var turn = 0
    while !isOver.load(ordering: .relaxed) {
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

  /// Waits until there is a connection to accept, or one that waits may have its turn.
  private func awaitWork() {
    let milliseconds = context.arrivals.isEmpty ? -1 : Self.pauseMilliseconds
    withUnsafeTemporaryAllocation(of: pollfd.self, capacity: 2) { entries in
      entries[0] = pollfd(fd: listener, events: Int16(POLLIN), revents: 0)
      entries[1] = pollfd(fd: wake.descriptor, events: Int16(POLLIN), revents: 0)
      poll(entries.baseAddress, 2, milliseconds)
      if entries[1].revents != 0 { wake.reset() }
    }
  }

  /// Accepts a connection, which then waits for its turn, or is closed where it has no place. False where there is
  /// none.
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

  /// What accept(2) failed for. Whether to try once more at once.
  private func recover(from error: Int32, _ spare: inout SpareDescriptor) -> Bool {
    switch error {
    case EAGAIN: return false
    case EMFILE, ENFILE:
      if spare.closeNext(of: listener) {
        context.conditions.note(.descriptors)
        return true
      }
    // Of connections that ended before they were accepted (accept(2)).
    case ECONNABORTED, EINTR, EPROTO, ENETDOWN, ENOPROTOOPT, EHOSTDOWN, ENONET, EHOSTUNREACH, EOPNOTSUPP, ENETUNREACH:
      return true
    default: break
    }
    // The socket stays readable, so a next call would be here again at once.
    SystemThread.pause(milliseconds: 5)
    return false
  }
}

/// A descriptor that is kept for the moment when none is left: it is given up to accept the connection that waits,
/// which is closed then, and opened again. Without it accept(2) would fail for as long as none is left, while its
/// socket stays readable. One thread.
private struct SpareDescriptor: ~Copyable {
  private var descriptor: Int32 = -1

  /// Opens it.
  init() {
    descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC)
  }

  deinit {
    if descriptor >= 0 { close(descriptor) }
  }

  /// Whether there is one. Another thread may have opened a file at the moment when it was given up: then it is made
  /// good before any connection is taken, or those that come next could not even be closed.
  mutating func isKept() -> Bool {
    if descriptor < 0 { descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC) }
    return descriptor >= 0
  }

  /// Accepts the connection that waits in the place of the spare, and closes it. False where none waits, or another
  /// thread was quicker and had the descriptor.
  mutating func closeNext(of listener: Int32) -> Bool {
    if descriptor >= 0 { close(descriptor) }
    let connection = accept(listener, nil, nil)
    if connection >= 0 { close(connection) }
    descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC)
    return connection >= 0
  }
}
