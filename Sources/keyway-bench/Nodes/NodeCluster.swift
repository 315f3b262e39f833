import Glibc
import Support
import TestKit

/// The nodes of a test, and the database that they share where they are peers.
final class NodeCluster {
  let nodes: [ClusterNode]
  private let postgres: PostgresServer?
  /// The database that peers share.
  private let database: String

  /// Nodes that are not started yet; which of the followers follow another follower is drawn.
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

  /// Where clients reach the nodes.
  var doors: [NodeDoor] { nodes.map(\.door) }

  /// Whether there is a database that can be restarted.
  var hasDatabase: Bool { postgres != nil }

  /// The peer that appended last, and that the others pass their writes on to; nil where that is not known.
  var pen: ClusterNode? {
    let url = try? postgres?.execute("SELECT pen FROM keyway.head", in: database)
    return nodes.first { $0.url == url }
  }

  /// How many answers of the database to appends were lost.
  var lostAnswers: Int { postgres == nil ? 0 : nodes.map { $0.proxy(on: .exit).lossCount }.reduce(0, +) }

  /// Ends the database at once; what it has acknowledged it has again after `startDatabase`.
  func stopDatabase() throws { try postgres?.stop() }

  func startDatabase() throws { try postgres?.start() }

  /// Ends the database, and has its standby take its place on all ways that lead there.
  func failOver(_ ending: PostgresServer.Ending) throws {
    guard let postgres else { return }
    try postgres.failOver(ending)
    for node in nodes { node.proxy(on: .exit).lead(to: postgres.port) }
  }

  /// Makes the database a new standby.
  func addStandby() throws { try postgres?.addStandby() }

  /// Waits until all serve what they should.
  func awaitReady() throws {
    for node in nodes { try node.awaitReady() }
  }
}

/// One server process of several, and the two ways that it has to the others: both can be cut.
final class ClusterNode {
  /// A way between nodes, or to the database.
  enum Way: Hashable, Sendable, CaseIterable {
    /// By which others reach it: what its `nodes.url` leads through.
    case entrance
    /// By which it reaches the node that it follows, or the database.
    case exit
  }

  /// What a node without its database says when it ends.
  private static let unreachable = "Error: the database cannot be reached"

  let index: Int
  let door: NodeDoor
  private let server: KeywayServer
  private var settings: [String: String]
  private let entrance: FaultyProxy
  private let exit: FaultyProxy?
  private var started: UInt64 = 0
  private var lastChanges: [String: String] = [:]

  /// A node that is not started yet. `exit` is the way that `arguments` have it take.
  init(_ index: Int, plan: NodesPlan, arguments: [String], settings: [String: String], exit: FaultyProxy?) throws {
    self.index = index
    self.exit = exit
    server = try KeywayServer(program: plan.program, arguments, output: .log(plan.logFile(of: index)))
    door = NodeDoor(node: index, port: server.port)
    entrance = try FaultyProxy(to: server.port)
    self.settings = settings.merging(["nodes.url": "http://127.0.0.1:\(entrance.port)"]) { _, new in new }
  }

  /// Lets others follow this node that are reached at these addresses. To be called before it is started.
  fileprivate func letFollow(_ urls: [String]) {
    settings["nodes.followers"] = "true"
    settings["nodes.urls"] = urls.joined(separator: ",")
  }

  /// Where the others reach it.
  fileprivate var url: String { settings["nodes.url"] ?? "" }

  /// The port of 127.0.0.1 that it serves.
  fileprivate var port: UInt16 { server.port }

  /// The ways that it has.
  var ways: [Way] { exit == nil ? [.entrance] : [.entrance, .exit] }

  /// The proxy on a way that it has.
  func proxy(on way: Way) -> FaultyProxy { way == .exit ? exit ?? entrance : entrance }

  /// Starts it with further settings; comes back at once.
  func start(_ changes: [String: String]) throws {
    try server.start(settings: settings.merging(changes) { _, new in new })
    door.turn()
    lastChanges = changes
    started = SystemClock.now()
  }

  /// Since its last start.
  var secondsSinceStart: Double { SystemClock.seconds(since: started) }

  /// Waits until it serves what it should. A node that has ended because it could not reach its database while it
  /// started is started anew, as its supervisor would do.
  fileprivate func awaitReady(restarts: Int = 3) throws {
    do { try server.awaitReady(seconds: 3 * RegisterClient.patienceSeconds) } catch {
      guard restarts > 0, "\(error)".contains(Self.unreachable) else { throw error }
      door.turn()
      try start(lastChanges)
      try awaitReady(restarts: restarts - 1)
    }
  }

  /// Sends a signal and does not wait.
  func send(_ signal: Int32) { server.send(signal) }

  /// Ends it by a signal, and gives its exit status.
  func end(_ signal: Int32) throws -> Int32 {
    door.turn()
    return try server.end(signal, within: RegisterClient.patienceSeconds)
  }
}

/// Where clients reach one node, and the newest state that its present life has shown: its answers never go back.
final class NodeDoor: Sendable {
  private struct State {
    /// Odd while the node is down.
    var life = 0
    var newest = 0
    var isForRefusals = false
  }

  /// What a client knows of a node when it asks.
  struct Mark: Hashable, Sendable {
    fileprivate var life: Int
    fileprivate var newest: Int
  }

  /// The number of the node, from 0.
  let node: Int
  /// The port of 127.0.0.1 that it serves.
  let port: UInt16
  private let state = Locked(State(life: 1))

  init(node: Int, port: UInt16) { (self.node, self.port) = (node, port) }

  /// The node is about to be started, or has just been ended.
  fileprivate func turn() {
    state.withLock { state in
      state.life += 1
      state.newest = 0
    }
  }

  /// Whether clients are to ask it for nothing but what has to be refused. A write that the node cannot append would
  /// keep it from judging any other.
  var isForRefusals: Bool {
    get { state.withLock { $0.isForRefusals } }
    set { state.withLock { $0.isForRefusals = newValue } }
  }

  /// Something is about to be asked.
  func mark() -> Mark { state.withLock { Mark(life: $0.life, newest: $0.newest) } }

  /// Takes the answer to what was asked at a mark; gives what is wrong with it.
  func take(_ response: WireResponse, since mark: Mark) -> String? {
    // What cannot be answered is judged by no state, and an answer given once more by that of the first time.
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
