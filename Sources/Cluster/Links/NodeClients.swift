import HTTPServer
import KeywayServer
import Support

/// The threads on which requests are passed on, and the connections on which they go, by node; what is sent together
/// has both of its own. All are made with the first request: most servers have no other node.
///
/// `state` is all that changes, under its lock, which is held for a look.
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

  /// The most nodes to which connections are kept.
  private static let clientCount = 100

  /// Of threads within these limits; `makeClient` makes the client of a node.
  init(_ limits: ClusterOptions.ForwardingLimits, _ makeClient: @escaping @Sendable (NodeAddress) -> NodeClient) {
    (self.limits, self.makeClient) = (limits, makeClient)
  }

  /// How many requests wait for a connection or another node's answer.
  var waitingCount: Int {
    let (pool, batchers) = state.withLock { ($0.pool, $0.batchers.values) }
    return (pool.map { $0.waitingCount + $0.runningCount } ?? 0) + batchers.reduce(0) { $0 + $1.count }
  }

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

  /// What sends writes to a node together, made where there is none; nil once stopped, and where there are as many
  /// nodes as may be.
  func batcher(of address: NodeAddress, make: (NodeClient) -> WriteBatcher) -> WriteBatcher? {
    state.withLock { state in
      guard !state.isStopped else { return nil }
      if let batcher = state.batchers[address] { return batcher }
      // Those that have nothing to do end their threads here.
      if state.batchers.count >= Self.clientCount { state.batchers = state.batchers.filter { $0.value.count > 0 } }
      guard state.batchers.count < Self.clientCount else { return nil }
      let batcher = make(makeClient(address))
      state.batchers[address] = batcher
      return batcher
    }
  }

  /// Ends what is under way.
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
