/// The parts of `/v1/nodes` that a node serves; every other part is 404, as if there were no such resource.
///
/// A server on its own serves none, so that no client can pose as a node there.
struct NodeService: Hashable, Sendable {
  /// True if other nodes may follow this one: they are given its journal and its snapshot. `nodes.followers`.
  let isFollowable: Bool
  /// True if nodes forward writes to this one: its followers do, and the peers that share its journal. Only then does
  /// it heed `Keyway-Request`.
  let takesWrites: Bool
  /// True if nodes may ask this one for its streams, which objects last with anywhere: also a follower's.
  let namesStreams: Bool

  /// Creates the service of a node that may be followed, shares its journal, or follows another node.
  init(isFollowable: Bool, sharesJournal: Bool, follows: Bool) {
    self.isFollowable = isFollowable
    takesWrites = isFollowable || sharesJournal
    namesStreams = takesWrites || follows
  }
}
