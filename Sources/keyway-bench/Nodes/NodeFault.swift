import TestKit

/// What is done to the nodes of a crash test while they are written to.
enum NodeFault: Hashable, Sendable, CustomStringConvertible {
  /// SIGKILL, and a start after a pause.
  case killed(Int)
  /// SIGTERM, its end, and a start.
  case restarted(Int)
  /// SIGSTOP, and SIGCONT after a pause: a machine that is away for a moment and does not know.
  case stopped(Int)
  /// A way of it carries nothing in one direction for a time; then what has waited comes, or, `breaking`, is lost.
  case cut(Int, ClusterNode.Way, FaultyProxy.Direction, breaking: Bool)
  /// The database carries out the next appends of the peer, and the answers are lost: some of those on connections that
  /// are broken off, or one on a connection that falls silent.
  case answerLost(Int, FaultyProxy.Ending)
  /// A partition: the others do not reach the peer, nor it them or the database, or does not hear it, for so long that
  /// another peer takes over; clients still reach it. `quiet`, they ask it for refusals alone.
  case isolated(Int, Partition)
  /// The database ends as at a crash, and starts again.
  case databaseKilled
  /// The database ends for good, and its standby takes its place, which has what was acknowledged.
  case failedOver(PostgresServer.Ending)

  /// How a peer is cut off.
  struct Partition: Hashable, Sendable {
    /// What its way to the database does not carry.
    var directions: Set<FaultyProxy.Direction>
    var isQuiet: Bool
    /// Whether what was on its way is lost, or comes later.
    var isBreaking: Bool

    /// Any.
    static func random(using random: inout SplitMix64) -> Partition {
      let both = Set(FaultyProxy.Direction.allCases)
      let directions = ([both] + both.sorted { "\($0)" < "\($1)" }.map { [$0] }).randomElement(using: &random) ?? both
      return Partition(directions: directions, isQuiet: random.chance(40), isBreaking: random.chance(60))
    }
  }

  /// Any fault of a cluster. One of peers happens to the one that appends as often as not.
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

  /// Whether it lasts until another peer has taken over, and is over before the next.
  var outlastsTakeover: Bool { if case .isolated = self { true } else { false } }

  /// Whether it happens to the database.
  var isOfDatabase: Bool { node == nil }

  /// The node that it happens to; nil where it is the database.
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
