import HTTPServer
import KeywayServer
import Support

/// The threads that forward requests, and the connections that they use, by node. Batches of writes have threads and
/// connections of their own. All are created for the first request, since most servers have no other node.
///
/// `state` holds all mutable state. Its lock is held only briefly.
final class NodeClients: Sendable {
  private struct State {
    var clients: [NodeAddress: NodeClient] = [:]
    var batchers: [NodeAddress: WriteBatcher] = [:]
    var pool: ReadingPool?
    var isStopped = false
  }

  private let limits: ClusterOptions.ForwardingLimits
  private let makeClient: @Sendable (NodeAddress) -> NodeClient
  private let state = Locked(State())

  /// The maximum number of nodes to which connections are kept.
  private static let clientCount = 100

  /// Creates the threads lazily, within the given limits; `makeClient` creates the client of a node.
  init(_ limits: ClusterOptions.ForwardingLimits, _ makeClient: @escaping @Sendable (NodeAddress) -> NodeClient) {
    (self.limits, self.makeClient) = (limits, makeClient)
  }

  /// The number of requests that wait for a connection or another node's answer.
  var waitingCount: Int {
    let (pool, batchers) = state.withLock { ($0.pool, $0.batchers.values) }
    return (pool.map { $0.waitingCount + $0.runningCount } ?? 0) + batchers.reduce(0) { $0 + $1.count }
  }

  /// Returns the thread pool; nil once stopped.
  func pool() -> ReadingPool? {
    state.withLock { state in
      guard !state.isStopped else { return nil }
      if state.pool == nil { state.pool = ReadingPool(limits.threads) }
      return state.pool
    }
  }

  /// Returns the client of a node; nil once stopped.
  func client(of address: NodeAddress) -> NodeClient? {
    state.withLock { state in
      guard !state.isStopped else { return nil }
      if let client = state.clients[address] { return client }
      // Requests under way keep a reference to their client.
      if state.clients.count >= Self.clientCount { state.clients = [:] }
      let client = makeClient(address)
      state.clients[address] = client
      return client
    }
  }

  /// Returns the batcher that sends writes to a node, and creates it if necessary. Returns nil once stopped, or if the
  /// maximum number of nodes have a batcher already.
  func batcher(of address: NodeAddress, make: (NodeClient) -> WriteBatcher) -> WriteBatcher? {
    state.withLock { state in
      guard !state.isStopped else { return nil }
      if let batcher = state.batchers[address] { return batcher }
      // Batchers without work are dropped, which ends their threads.
      if state.batchers.count >= Self.clientCount { state.batchers = state.batchers.filter { $0.value.count > 0 } }
      guard state.batchers.count < Self.clientCount else { return nil }
      let batcher = make(makeClient(address))
      state.batchers[address] = batcher
      return batcher
    }
  }

  /// Cancels the requests under way.
  func stop() {
    let (clients, batchers, pool) = state.withLock { state in
      state.isStopped = true
      return (state.clients.values, state.batchers.values, state.pool)
    }
    for client in clients { client.cut() }
    for batcher in batchers { batcher.stop() }
    pool?.stop()
  }
}
