import KeywayServer
import Store
import Support
import Synchronization

/// The other nodes that this one knows of, by the marks that begin the names of their streams and pages.
///
/// Only addresses that an operator has approved are published and used for requests: that of the node that this one
/// follows, those of `nodes.urls`, and those in the database of peers, since any node that may write there may write
/// the journal. A node that states another address may follow, but nothing is sent to it.
///
/// A follower learns of the nodes from its leader, the leader from its followers, including those that follow
/// indirectly; peers find one another in their database. `followed` and `peers` hold all mutable state, each under its
/// lock, which is held only briefly.
final class NodeDirectory: Sendable {
  private struct Followed {
    /// The address of the leader: the one that this node was given, whatever address the leader states.
    let address: NodeAddress
    /// The nodes that it knows, itself first.
    let urls: [String]
  }

  private struct Peers {
    var addresses: [NodeMark: NodeAddress] = [:]
    /// The time of the last query to the database.
    var asked: ContinuousClock.Instant?
  }

  /// The address at which other nodes reach this one.
  let url: String
  /// The mark that begins the names of this node's streams and pages.
  let mark: NodeMark
  private let followers: Followers
  private let listed: NodeURLs
  private let journal: (any SharedJournal)?
  private let followed = Locked<Followed?>(nil)
  private let isFollowing = Atomic(false)
  private let peers = Locked(Peers())

  /// The minimum time between two queries to the database for a mark without a known node.
  private static let pause = Duration.milliseconds(250)
  /// The maximum number of nodes that a node accepts from its leader.
  private static let most = 1_000

  /// Creates the directory of the node that others reach at `url`. It sends requests only to the `listed` addresses of
  /// nodes that follow.
  init(url: String, followers: Followers, listed: NodeURLs, journal: (any SharedJournal)?) {
    self.url = url
    self.followers = followers
    self.listed = listed
    self.journal = journal
    mark = NodeMark(of: url)
  }

  /// True if there has been no other node so far.
  var isAlone: Bool { journal == nil && !followers.hasHadAny && !isFollowing.load(ordering: .relaxed) }

  /// True unless this node follows another and has not learned of the other nodes yet.
  var isComplete: Bool { !isFollowing.load(ordering: .relaxed) || followed.withLock { $0 != nil } }

  /// Notes that this node follows another from now on.
  func beginFollowing() { isFollowing.store(true, ordering: .relaxed) }

  /// All nodes that this one knows, itself first, without its peers: the list that it gives to its followers.
  var urls: [String] {
    let known = (followed.withLock { $0?.urls } ?? []) + below
    return [url] + Set(known).subtracting([url]).sorted()
  }

  /// The nodes that follow this one, directly or indirectly, at listed addresses.
  var below: [String] { followers.names.filter { listed.contains($0) } }

  /// Returns the nodes that follow this one, directly or indirectly, and made a request in the last `nanoseconds`, as
  /// the node parts of their streams' numbers.
  func streamNodes(activeWithin nanoseconds: UInt64) -> Set<UInt64> {
    Set(followers.names(activeWithin: nanoseconds).map { StreamNumbers.node(at: $0) })
  }

  /// A digest that changes with `urls`.
  var digest: String { Self.digest(of: urls) }

  private static func digest(of urls: [String]) -> String {
    let bytes = Array(urls.joined(separator: "\n").utf8)
    return String(JournalDigest.start.linked(to: bytes).value, radix: 16)
  }

  /// Returns true if the list of nodes from the leader has this digest.
  func isCurrent(_ digest: String) -> Bool {
    followed.withLock { $0.map { Self.digest(of: $0.urls) == digest } ?? false }
  }

  /// Notes the list of nodes from the leader at an address; the list has the leader itself first.
  func follow(_ address: NodeAddress, _ urls: [String]) {
    beginFollowing()
    followed.withLock { $0 = Followed(address: address, urls: Array(urls.prefix(Self.most))) }
  }

  /// Returns the address of the node of a mark; nil if it is unknown. May query the database.
  func address(of mark: NodeMark) -> NodeAddress? {
    if let followed = followed.withLock({ $0 }) {
      if let url = followed.urls.first, NodeMark(of: url) == mark { return followed.address }
      if let url = followed.urls.first(where: { NodeMark(of: $0) == mark }), listed.contains(url) {
        return try? NodeAddress(url)
      }
    }
    if let url = below.first(where: { NodeMark(of: $0) == mark }) { return try? NodeAddress(url) }
    return journal.flatMap { peer(mark, $0) }
  }

  private func peer(_ mark: NodeMark, _ journal: any SharedJournal) -> NodeAddress? {
    let (known, isDue) = peers.withLock { peers -> (NodeAddress?, Bool) in
      if let known = peers.addresses[mark] { return (known, false) }
      if let asked = peers.asked, asked + Self.pause > .now { return (nil, false) }
      peers.asked = .now
      return (nil, true)
    }
    guard isDue, journal.silence < WriteTime.silence, let urls = try? journal.nodes() else { return known }
    var addresses: [NodeMark: NodeAddress] = [:]
    for url in urls {
      if let address = try? NodeAddress(url) { addresses[NodeMark(of: url)] = address }
    }
    peers.withLock { $0.addresses = addresses }
    return addresses[mark]
  }
}
