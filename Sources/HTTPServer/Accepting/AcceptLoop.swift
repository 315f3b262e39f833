import CSocketCalls
import Glibc
import Support
import Synchronization

/// What the thread of an `Acceptor` does.
final class AcceptLoop: Sendable {
  /// How many connections are accepted before some are handed on. That costs little beside serving one, so that the
  /// backlog of the kernel, in which all clients wait in the order of coming, is soon empty.
  private static let batchCount = 1_024
  /// How many connections a thread of libmicrohttpd is given before it has begun them.
  private static let startingPerThread = 8
  /// How long the thread sleeps where connections wait for their addresses' next share.
  private static let pauseMilliseconds = Int32(TrafficShare.timeTickMilliseconds)

  private let listener: Int32
  private let context: ServerContext
  private let daemons: [DaemonHandle]
  private let wake: WakeDescriptor
  private let isOver = Atomic<Bool>(false)

  /// Of a listening socket, which it closes in the end. Nil where the system has no descriptor left.
  init?(listener: Int32, context: ServerContext, daemons: [DaemonHandle]) {
    guard let wake = WakeDescriptor() else { return nil }
    (self.listener, self.context, self.daemons, self.wake) = (listener, context, daemons, wake)
  }

  /// How many connections may be with so many threads before they have begun them.
  static func startingCount(threads: Int) -> Int { threads * startingPerThread }

  /// Has `run` return.
  func end() {
    isOver.store(true, ordering: .relaxed)
    wake.wake()
  }

  /// Accepts and hands on until the end.
  func run() {
    var spare = SpareDescriptor()
    var turn = 0
    while !isOver.load(ordering: .relaxed) {
      awaitWork()
      for _ in 0..<Self.batchCount {
        guard acceptOne(&spare) else { break }
      }
      let now = MonotonicClock.milliseconds
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
