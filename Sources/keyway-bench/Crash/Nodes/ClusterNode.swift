import Glibc
import TestKit

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
  func letFollow(_ urls: [String]) {
    settings["nodes.followers"] = "true"
    settings["nodes.urls"] = urls.joined(separator: ",")
  }

  /// Where the others reach it.
  var url: String { settings["nodes.url"] ?? "" }

  /// The port of 127.0.0.1 that it serves.
  var port: UInt16 { server.port }

  /// The ways that it has.
  var ways: [Way] { exit == nil ? [.entrance] : [.entrance, .exit] }

  /// The proxy on a way that it has.
  func proxy(on way: Way) -> FaultyProxy { way == .exit ? exit ?? entrance : entrance }

  /// Starts it with further settings; comes back at once.
  func start(_ changes: [String: String]) throws {
    try server.start(settings: settings.merging(changes) { _, new in new })
    door.turn()
    lastChanges = changes
    started = MonotonicClock.now()
  }

  /// Since its last start.
  var secondsSinceStart: Double { MonotonicClock.seconds(since: started) }

  /// Waits until it serves what it should. A node that has ended because it could not reach its database while it
  /// started is started anew, as its supervisor would do.
  func awaitReady(restarts: Int = 3) throws {
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
