import Glibc
import Support
import TestKit

/// The nodes of a test, and the database that they share if they are peers.
final class NodeCluster {
  let nodes: [ClusterNode]
  private let postgres: PostgresServer?
  /// The name of the database that peers share.
  private let database: String

  /// Creates nodes that are not started yet, with a random choice of the followers that follow another follower.
  init(_ plan: NodesPlan, using random: inout SplitMix64) throws {
    let settings = [
      "seed": "none", "heartbeat.seconds": "1", "nodes.answerSeconds": "3", "nodes.staleSeconds": "3",
      // More than one round needs, and few enough for a quick start.
      "history.revisions": "2000",
    ]
    switch plan.kind {
    case .followers:
      (postgres, database) = (nil, "")
      nodes = try Self.followers(plan, settings, using: &random)
    case .peers:
      let postgres = try PostgresServer()
      try postgres.addStandby()
      let name = try postgres.makeDatabase().split(separator: "/").last.map(String.init) ?? ""
      nodes = try (0..<plan.nodes).map { index in
        let way = try FaultyProxy(to: postgres.port)
        return try ClusterNode(
          index, plan: plan,
          arguments: [
            "--journal", postgres.address(of: name, port: way.port), "--schema", plan.schemaFile,
            "--store", plan.store(of: index),
          ],
          settings: settings, exit: way)
      }
      (self.postgres, database) = (postgres, name)
    }
  }

  private static func followers(
    _ plan: NodesPlan, _ settings: [String: String], using random: inout SplitMix64
  ) throws -> [ClusterNode] {
    var nodes: [ClusterNode] = []
    for index in 0..<plan.nodes {
      let store = ["--store", plan.store(of: index)]
      let followed = random.chance(30) ? nodes.last : nodes.first
      guard let followed else {
        nodes.append(
          try ClusterNode(
            index, plan: plan, arguments: store + ["--schema", plan.schemaFile], settings: settings, exit: nil))
        continue
      }
      let way = try FaultyProxy(to: followed.port)
      nodes.append(
        try ClusterNode(
          index, plan: plan, arguments: store + ["--follow", "http://127.0.0.1:\(way.port)"], settings: settings,
          exit: way))
    }
    for node in nodes { node.letFollow(nodes.map(\.url)) }
    return nodes
  }

  /// The doors through which clients reach the nodes.
  var doors: [NodeDoor] { nodes.map(\.door) }

  /// True if there is a database that can be restarted.
  var hasDatabase: Bool { postgres != nil }

  /// The peer that appended last, to which the others forward their writes; nil if that is not known.
  var pen: ClusterNode? {
    let url = try? postgres?.execute("SELECT pen FROM keyway.head", in: database)
    return nodes.first { $0.url == url }
  }

  /// The number of lost answers of the database to appends.
  var lostAnswers: Int { postgres == nil ? 0 : nodes.map { $0.proxy(on: .exit).lossCount }.reduce(0, +) }

  /// Ends the database at once; after `startDatabase` it has everything that it has acknowledged.
  func stopDatabase() throws { try postgres?.stop() }

  func startDatabase() throws { try postgres?.start() }

  /// Ends the database, and redirects all connections to its standby.
  func failOver(_ ending: PostgresServer.Ending) throws {
    guard let postgres else { return }
    try postgres.failOver(ending)
    for node in nodes { node.proxy(on: .exit).lead(to: postgres.port) }
  }

  /// Adds a new standby to the database.
  func addStandby() throws { try postgres?.addStandby() }

  /// Waits until all nodes are ready.
  func awaitReady() throws {
    for node in nodes { try node.awaitReady() }
  }
}

/// One server process of several, and its two network paths to the others, which can both be cut.
final class ClusterNode {
  /// A network path between nodes, or to the database.
  enum Way: Hashable, Sendable, CaseIterable {
    /// The path by which others reach the node: its `nodes.url` is the address of this proxy.
    case entrance
    /// The path by which it reaches the node that it follows, or the database.
    case exit
  }

  /// The message with which a node without its database exits.
  private static let unreachable = "Error: the database cannot be reached"

  let index: Int
  let door: NodeDoor
  private let server: KeywayServer
  private var settings: [String: String]
  private let entrance: FaultyProxy
  private let exit: FaultyProxy?
  private var started: UInt64 = 0
  private var lastChanges: [String: String] = [:]

  /// Creates a node that is not started yet. `exit` is the proxy that `arguments` lead through.
  init(_ index: Int, plan: NodesPlan, arguments: [String], settings: [String: String], exit: FaultyProxy?) throws {
    self.index = index
    self.exit = exit
    server = try KeywayServer(program: plan.program, arguments, output: .log(plan.logFile(of: index)))
    door = NodeDoor(node: index, port: server.port)
    entrance = try FaultyProxy(to: server.port)
    self.settings = settings.merging(["nodes.url": "http://127.0.0.1:\(entrance.port)"]) { _, new in new }
  }

  /// Allows nodes at these addresses to follow this one. Call it before the node is started.
  fileprivate func letFollow(_ urls: [String]) {
    settings["nodes.followers"] = "true"
    settings["nodes.urls"] = urls.joined(separator: ",")
  }

  /// The address at which the other nodes reach it.
  fileprivate var url: String { settings["nodes.url"] ?? "" }

  /// The port of 127.0.0.1 on which it serves.
  fileprivate var port: UInt16 { server.port }

  /// The paths that the node has.
  var ways: [Way] { exit == nil ? [.entrance] : [.entrance, .exit] }

  /// Returns the proxy on one of its paths.
  func proxy(on way: Way) -> FaultyProxy { way == .exit ? exit ?? entrance : entrance }

  /// Starts it with further settings, and returns at once.
  func start(_ changes: [String: String]) throws {
    try server.start(settings: settings.merging(changes) { _, new in new })
    door.turn()
    lastChanges = changes
    started = SystemClock.now()
  }

  /// The time since its last start, in seconds.
  var secondsSinceStart: Double { SystemClock.seconds(since: started) }

  /// Waits until it is ready. A node that has exited because it could not reach its database during its start is
  /// started again, as a supervisor would do.
  fileprivate func awaitReady(restarts: Int = 3) throws {
    do { try server.awaitReady(seconds: 3 * RegisterClient.patienceSeconds) } catch {
      guard restarts > 0, "\(error)".contains(Self.unreachable) else { throw error }
      door.turn()
      try start(lastChanges)
      try awaitReady(restarts: restarts - 1)
    }
  }

  /// Sends a signal without waiting.
  func send(_ signal: Int32) { server.send(signal) }

  /// Ends it with a signal, and returns its exit status.
  func end(_ signal: Int32) throws -> Int32 {
    door.turn()
    return try server.end(signal, within: RegisterClient.patienceSeconds)
  }
}

/// The address of one node for clients, and the newest state that its present run has shown: its answers must not go
/// back.
final class NodeDoor: Sendable {
  private struct State {
    /// The number of starts and ends; odd while the node is down.
    var life = 0
    var newest = 0
    var isForRefusals = false
  }

  /// A client's knowledge of a node when it sends a request.
  struct Mark: Hashable, Sendable {
    fileprivate var life: Int
    fileprivate var newest: Int
  }

  /// The number of the node, from 0.
  let node: Int
  /// The port of 127.0.0.1 on which it serves.
  let port: UInt16
  private let state = Locked(State(life: 1))

  init(node: Int, port: UInt16) { (self.node, self.port) = (node, port) }

  /// Notes that the node is about to be started, or has just ended.
  fileprivate func turn() {
    state.withLock { state in
      state.life += 1
      state.newest = 0
    }
  }

  /// True if clients must send it only requests that have to be refused. A write that the node cannot append would keep
  /// it from judging any other.
  var isForRefusals: Bool {
    get { state.withLock { $0.isForRefusals } }
    set { state.withLock { $0.isForRefusals = newValue } }
  }

  /// Returns a mark for a request that is about to be sent.
  func mark() -> Mark { state.withLock { Mark(life: $0.life, newest: $0.newest) } }

  /// Checks the answer to a request sent at a mark. Returns what is wrong with it; nil if nothing is.
  func take(_ response: WireResponse, since mark: Mark) -> String? {
    // A 503 is not based on any state, and a replayed answer is based on that of the first answer.
    guard response.status != 503, response["Idempotency-Replayed"] == nil, let cursor = Cursor(of: response) else {
      return nil
    }
    return state.withLock { state in
      guard state.life == mark.life, state.life.isMultiple(of: 2) else { return nil }
      state.newest = max(state.newest, cursor.revision)
      return cursor.revision < mark.newest
        ? "node \(node) answered from revision \(cursor.revision), and before from \(mark.newest)" : nil
    }
  }
}
