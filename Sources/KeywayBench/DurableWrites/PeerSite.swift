/// A server that runs, for those who measure it.
struct PeerSite: Hashable, Sendable {
  /// What it is sent.
  let peer: WritePeer
  /// The processes that work for it.
  let pids: [Int]

  /// So many connections that write.
  func writing(_ connections: Int) -> ClosedLoop.Lane {
    ClosedLoop.Lane(
      name: peer.kind.rawValue, address: peer.address, connections: connections, requests: peer.writes,
      answerBytes: peer.answerBytes)
  }

  /// So many connections that read.
  func reading(_ connections: Int) -> ClosedLoop.Lane {
    ClosedLoop.Lane(
      name: peer.kind.rawValue, address: peer.address, connections: connections, requests: peer.reads)
  }
}
