import TestKit

/// The faults that happen to the nodes of a crash test while clients write.
enum NodeFault: Hashable, Sendable, CustomStringConvertible {
  /// SIGKILL, and a restart after a pause.
  case killed(Int)
  /// SIGTERM, a wait for the end, and a restart.
  case restarted(Int)
  /// SIGSTOP, and SIGCONT after a pause: a machine that is suspended for a moment and does not notice.
  case stopped(Int)
  /// A network path of the node carries nothing in one direction for a time; then the data that has waited arrives, or,
  /// if `breaking`, is lost.
  case cut(Int, ClusterNode.Way, FaultyProxy.Direction, breaking: Bool)
  /// The database carries out the next appends of the peer, and the answers are lost: either several, on connections
  /// that are reset, or one, on a connection that falls silent.
  case answerLost(Int, FaultyProxy.Ending)
  /// A partition: the other nodes and the peer cannot reach each other, and the path between the peer and the database
  /// carries nothing in at least one direction, for so long that another peer takes over; clients still reach it. With
  /// `isQuiet`, clients send it only requests that have to be refused.
  case isolated(Int, Partition)
  /// The database ends as in a crash, and restarts.
  case databaseKilled
  /// The database ends for good, and its standby, which has everything that was acknowledged, takes its place.
  case failedOver(PostgresServer.Ending)

  /// The way in which a peer is cut off.
  struct Partition: Hashable, Sendable {
    /// The directions in which its path to the database carries nothing.
    var directions: Set<FaultyProxy.Direction>
    var isQuiet: Bool
    /// True if data in transit is lost, false if it arrives later.
    var isBreaking: Bool

    /// Returns a random partition.
    static func random(using random: inout SplitMix64) -> Partition {
      let both = Set(FaultyProxy.Direction.allCases)
      let directions = ([both] + both.sorted { "\($0)" < "\($1)" }.map { [$0] }).randomElement(using: &random) ?? both
      return Partition(directions: directions, isQuiet: random.chance(40), isBreaking: random.chance(60))
    }
  }

  /// Returns a random fault of a cluster. With peers, it happens to the one that appends at least half of the time.
  static func random(in cluster: NodeCluster, using random: inout SplitMix64) -> NodeFault {
    var index = Int.random(in: cluster.nodes.indices, using: &random)
    if cluster.hasDatabase, random.chance(50), let pen = cluster.pen { index = pen.index }
    switch Int.random(in: 0..<100, using: &random) {
    case 0..<22: return .killed(index)
    case 22..<28: return .restarted(index)
    case 28..<42: return .stopped(index)
    case 42..<46 where cluster.hasDatabase: return .databaseKilled
    case 46..<51 where cluster.hasDatabase: return .failedOver(random.chance(50) ? .kill : .quit)
    case 51..<63 where cluster.hasDatabase:
      return .answerLost(cluster.pen?.index ?? index, random.chance(70) ? .reset : .silence)
    case 63..<75 where cluster.hasDatabase:
      return .isolated(cluster.pen?.index ?? index, .random(using: &random))
    default:
      let way = cluster.nodes[index].ways.randomElement(using: &random) ?? .entrance
      return .cut(index, way, random.chance(50) ? .toTarget : .fromTarget, breaking: random.chance(40))
    }
  }

  /// True if the fault lasts until another peer has taken over, and is over before the next.
  var outlastsTakeover: Bool { if case .isolated = self { true } else { false } }

  /// True if it happens to the database.
  var isOfDatabase: Bool { node == nil }

  /// The node that it happens to; nil for the database.
  var node: Int? {
    switch self {
    case .killed(let node), .restarted(let node), .stopped(let node), .cut(let node, _, _, _),
      .answerLost(let node, _), .isolated(let node, _):
      node
    case .databaseKilled, .failedOver: nil
    }
  }

  /// Its name in a report.
  var kind: String {
    switch self {
    case .killed: "killed"
    case .restarted: "restarted"
    case .stopped: "stopped"
    case .cut: "cut"
    case .answerLost: "answerLost"
    case .isolated: "isolated"
    case .databaseKilled: "databaseKilled"
    case .failedOver: "failedOver"
    }
  }

  var description: String {
    switch self {
    case .killed(let node): "node \(node) killed"
    case .restarted(let node): "node \(node) restarted"
    case .stopped(let node): "node \(node) stopped for a while"
    case .cut(let node, let way, let direction, let breaking):
      "the \(way) of node \(node) cut \(direction)\(breaking ? ", its connections broken off" : "")"
    case .answerLost(let node, let ending):
      ending == .silence
        ? "the answer to an append of node \(node) lost, and all that would have come after it"
        : "the answers to appends of node \(node) lost, their connections broken off"
    case .isolated(let node, let partition):
      "node \(node) cut off from the others, and from the database "
        + partition.directions.map { "\($0)" }.sorted().joined(separator: " and ")
        + (partition.isQuiet ? ", while clients asked it for refusals" : "")
        + (partition.isBreaking ? ", its connections broken off" : "")
    case .databaseKilled: "the database killed"
    case .failedOver(let ending): "the database ended by SIG\(ending.rawValue), its standby in its place"
    }
  }
}
