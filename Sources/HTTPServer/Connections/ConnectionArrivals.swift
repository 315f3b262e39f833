import Glibc
import Support

/// The connections that were accepted and not begun to be served: which of them a thread of libmicrohttpd gets next.
///
/// Addresses take turns, and no more than a few connections are with the threads at once. So one whose client opens
/// thousands waits behind its own, and not in front of all others in the backlog of the kernel.
final class ConnectionArrivals: Sendable {
  private struct State {
    var queue: FairQueue<ClientAddress, AcceptedConnection>
    /// The places of those that are with the threads, which have not begun them.
    var starting: [Int32: ConnectionSlot] = [:]
    var isClosed = false
  }

  private let state: Locked<State>

  /// Connections of which so many may be with the threads at once.
  init(startingAtOnce limit: Int) {
    state = Locked(State(queue: FairQueue(threads: limit, limit: .max, limitPerClient: .max)))
  }

  /// Whether none waits.
  var isEmpty: Bool { state.withLock { $0.queue.waitingCount == 0 } }

  /// Takes in a connection, which waits until it is `next`.
  func add(_ connection: AcceptedConnection) {
    state.withLock { state in
      // A thread that had no memory for it has closed an earlier one of the same number.
      if let lost = state.starting.removeValue(forKey: connection.descriptor) { state.queue.finish(lost.client) }
      // The limiter has bounded them, in all and for each address.
      _ = state.queue.enqueue(connection, of: connection.slot.client)
    }
  }

  /// The connection whose turn it is, of those whose addresses are allowed one; it counts as starting until it is
  /// `begun`. Nil where none waits, or enough are starting.
  func next(isAllowed: (ConnectionSlot) -> Bool) -> AcceptedConnection? {
    state.withLock { state in
      guard !state.isClosed else { return nil }
      guard let connection = state.queue.next(of: { isAllowed($1.slot) })?.job else { return nil }
      state.starting[connection.descriptor] = connection.slot
      return connection
    }
  }

  /// A thread begins to serve a connection: gives its place. Nil where the descriptor is none of a connection that is
  /// starting.
  func begun(_ descriptor: Int32) -> ConnectionSlot? {
    state.withLock { state in
      guard let slot = state.starting.removeValue(forKey: descriptor) else { return nil }
      state.queue.finish(slot.client)
      return slot
    }
  }

  /// Gives no connection to a thread from now on; gives those that wait, for the caller to close.
  func close() -> [AcceptedConnection] {
    state.withLock { state in
      state.isClosed = true
      return state.queue.removeWaiting()
    }
  }

  /// The threads have ended, and with them the connections that they had and had not begun.
  func forgetStarting() { state.withLock { $0.starting = [:] } }
}

/// A connection that the kernel has accepted, on its way to a thread of libmicrohttpd.
struct AcceptedConnection: Sendable {
  /// Its descriptor, which the holder of this value closes or hands on.
  let descriptor: Int32
  /// Its place among the connections that may be open.
  let slot: ConnectionSlot
  /// The address of the other side, as the kernel writes it.
  let peer: sockaddr_storage
  /// How many bytes of `peer` are meant.
  let peerLength: socklen_t
}
