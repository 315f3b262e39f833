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
