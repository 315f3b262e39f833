import HTTPServer
import Locking

/// The threads on which requests are passed on, and the connections on which they go, by node. Both are made with the
/// first request: most servers have no other node.
///
/// `state` is all that changes, under its lock, which is held for a look.
final class NodeClients: Sendable {
  private struct State {
    var clients: [NodeAddress: NodeClient] = [:]
    var pool: ReadingPool?
    var isStopped = false
  }

  private let limits: Node.ForwardingLimits
  private let makeClient: @Sendable (NodeAddress) -> NodeClient
  private let state = Locked(State())

  /// The most nodes to which connections are kept.
  private static let clientCount = 100

  /// Of threads within these limits; `makeClient` makes the client of a node.
  init(_ limits: Node.ForwardingLimits, _ makeClient: @escaping @Sendable (NodeAddress) -> NodeClient) {
    (self.limits, self.makeClient) = (limits, makeClient)
  }

  /// How many requests wait for a connection or another node's answer.
  var waitingCount: Int { state.withLock { $0.pool }.map { $0.waitingCount + $0.runningCount } ?? 0 }

  /// The threads; nil once stopped.
  func pool() -> ReadingPool? {
    state.withLock { state in
      guard !state.isStopped else { return nil }
      if state.pool == nil { state.pool = ReadingPool(limits.threads) }
      return state.pool
    }
  }

  /// The client of a node; nil once stopped.
  func client(of address: NodeAddress) -> NodeClient? {
    state.withLock { state in
      guard !state.isStopped else { return nil }
      if let client = state.clients[address] { return client }
      // What is under way keeps its client.
      if state.clients.count >= Self.clientCount { state.clients = [:] }
      let client = makeClient(address)
      state.clients[address] = client
      return client
    }
  }

  /// Ends what is under way.
  func stop() {
    let (clients, pool) = state.withLock { state in
      state.isStopped = true
      return (state.clients.values, state.pool)
    }
    for client in clients { client.cut() }
    pool?.stop()
  }
}
