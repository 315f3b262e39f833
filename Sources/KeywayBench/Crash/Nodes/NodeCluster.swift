import LoopbackKit
import Seeding

/// The nodes of a test, and the database that they share where they are peers.
final class NodeCluster {
  let nodes: [ClusterNode]
  private let postgres: PostgresServer?

  /// Nodes that are not started yet; which of the followers follow another follower is drawn.
  init(_ plan: NodesPlan, using random: inout SplitMix64) throws {
    let settings = [
      "seed": "none", "heartbeat.seconds": "1", "nodes.answerSeconds": "3", "nodes.staleSeconds": "3",
      // More than one round needs, and few enough for a quick start.
      "history.revisions": "2000",
    ]
    switch plan.kind {
    case .followers:
      postgres = nil
      nodes = try Self.followers(plan, settings, using: &random)
    case .peers:
      let postgres = try PostgresServer()
      let database = try postgres.makeDatabase()
      let name = database.split(separator: "/").last.map(String.init) ?? ""
      nodes = try (0..<plan.nodes).map { index in
        let way = try OneWayProxy(to: postgres.port)
        return try ClusterNode(
          index, plan: plan,
          arguments: ["--journal", postgres.address(of: name, port: way.port), "--schema", plan.schemaFile],
          settings: settings, exit: way)
      }
      self.postgres = postgres
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
      let way = try OneWayProxy(to: followed.port)
      nodes.append(
        try ClusterNode(
          index, plan: plan, arguments: store + ["--follow", "http://127.0.0.1:\(way.port)"], settings: settings,
          exit: way))
    }
    return nodes
  }

  /// Where clients reach the nodes.
  var doors: [NodeDoor] { nodes.map(\.door) }

  /// Whether there is a database that can be restarted.
  var hasDatabase: Bool { postgres != nil }

  /// Ends the database at once; what it has acknowledged it has again after `startDatabase`.
  func stopDatabase() throws { try postgres?.stop() }

  func startDatabase() throws { try postgres?.start() }

  /// Waits until all serve what they should.
  func awaitReady() throws {
    for node in nodes { try node.awaitReady() }
  }
}
