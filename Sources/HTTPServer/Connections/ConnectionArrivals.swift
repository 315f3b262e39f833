import Glibc
import Support

/// The connections that were accepted and not yet begun, in the order in which the threads of libmicrohttpd get them.
///
/// Addresses are served round-robin, and only a few connections are with the threads at once. So the connections of a
/// client that opens thousands wait behind each other, and not in front of all others in the kernel's backlog.
final class ConnectionArrivals: Sendable {
  private struct State {
    var queue: FairQueue<ClientAddress, AcceptedConnection>
    /// The slots of the connections that are with the threads but have not been begun.
    var starting: [Int32: ConnectionSlot] = [:]
    var isClosed = false
  }

  private let state: Locked<State>

  /// Creates a queue of which at most `limit` connections may be with the threads at once.
  init(startingAtOnce limit: Int) {
    state = Locked(State(queue: FairQueue(threads: limit, limit: .max, limitPerClient: .max)))
  }

  /// True if no connection waits.
  var isEmpty: Bool { state.withLock { $0.queue.waitingCount == 0 } }

  /// Adds a connection, which waits until `next` returns it.
  func add(_ connection: AcceptedConnection) {
    state.withLock { state in
      // A thread that had no memory for an earlier connection with the same descriptor has closed that.
      if let lost = state.starting.removeValue(forKey: connection.descriptor) { state.queue.finish(lost.client) }
      // The limiter has bounded their number, in total and for each address.
      _ = state.queue.enqueue(connection, of: connection.slot.client)
    }
  }

  /// Returns the next connection in round-robin order of the addresses for which `isAllowed` returns true. It counts as
  /// starting until it is `begun`. Returns nil if none waits, or enough are starting.
  func next(isAllowed: (ConnectionSlot) -> Bool) -> AcceptedConnection? {
    state.withLock { state in
      guard !state.isClosed else { return nil }
      guard let connection = state.queue.next(of: { isAllowed($1.slot) })?.job else { return nil }
      state.starting[connection.descriptor] = connection.slot
      return connection
    }
  }

  /// Returns the slot of a connection that a thread begins to serve; nil if the descriptor is not that of a starting
  /// connection.
  func begun(_ descriptor: Int32) -> ConnectionSlot? {
    state.withLock { state in
      guard let slot = state.starting.removeValue(forKey: descriptor) else { return nil }
      state.queue.finish(slot.client)
      return slot
    }
  }

  /// Stops handing out connections, and returns those that wait, for the caller to close.
  func close() -> [AcceptedConnection] {
    state.withLock { state in
      state.isClosed = true
      return state.queue.removeWaiting()
    }
  }

  /// Forgets the connections that the threads had not begun, after the threads have ended.
  func forgetStarting() { state.withLock { $0.starting = [:] } }
}

/// A connection that the kernel has accepted, on its way to a thread of libmicrohttpd.
struct AcceptedConnection: Sendable {
  /// The descriptor, which the owner of this value closes or hands on.
  let descriptor: Int32
  /// The connection's slot among those allowed.
  let slot: ConnectionSlot
  /// The address of the other side, as the kernel writes it.
  let peer: sockaddr_storage
  /// The number of bytes used in `peer`.
  let peerLength: socklen_t
}
