import LoopbackKit
import Seeding

/// What is done to the nodes of a crash test while they are written to.
enum NodeFault: Hashable, Sendable, CustomStringConvertible {
  /// SIGKILL, and a start after a pause.
  case killed(Int)
  /// SIGTERM, its end, and a start.
  case restarted(Int)
  /// SIGSTOP, and SIGCONT after a pause: a machine that is away for a moment and does not know.
  case stopped(Int)
  /// A way of it carries nothing in one direction for a time; then what has waited comes, or, `breaking`, is lost.
  case cut(Int, ClusterNode.Way, OneWayProxy.Direction, breaking: Bool)
  /// The database ends as at a crash, and starts again.
  case databaseKilled

  /// Any fault of a cluster.
  static func random(in cluster: NodeCluster, using random: inout SplitMix64) -> NodeFault {
    let index = Int.random(in: cluster.nodes.indices, using: &random)
    switch Int.random(in: 0..<100, using: &random) {
    case 0..<30: return .killed(index)
    case 30..<40: return .restarted(index)
    case 40..<55: return .stopped(index)
    case 55..<60 where cluster.hasDatabase: return .databaseKilled
    default:
      let way = cluster.nodes[index].ways.randomElement(using: &random) ?? .entrance
      return .cut(index, way, random.chance(50) ? .toTarget : .fromTarget, breaking: random.chance(40))
    }
  }

  /// The node that it happens to; nil where it is the database.
  var node: Int? {
    switch self {
    case .killed(let node), .restarted(let node), .stopped(let node), .cut(let node, _, _, _): node
    case .databaseKilled: nil
    }
  }

  /// Its name in a report.
  var kind: String {
    switch self {
    case .killed: "killed"
    case .restarted: "restarted"
    case .stopped: "stopped"
    case .cut: "cut"
    case .databaseKilled: "databaseKilled"
    }
  }

  var description: String {
    switch self {
    case .killed(let node): "node \(node) killed"
    case .restarted(let node): "node \(node) restarted"
    case .stopped(let node): "node \(node) stopped for a while"
    case .cut(let node, let way, let direction, let breaking):
      "the \(way) of node \(node) cut \(direction)\(breaking ? ", its connections broken off" : "")"
    case .databaseKilled: "the database killed"
    }
  }
}
