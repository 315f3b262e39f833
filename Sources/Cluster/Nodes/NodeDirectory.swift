import KeywayServer
import Store
import Support
import Synchronization

/// The other nodes that this one knows of, by the marks that the names of their streams and pages begin with.
///
/// Only addresses that an operator has vouched for are given out and passed on: that of the node that this one follows,
/// those of `nodes.urls`, and what stands in the database of peers, since who may write there may write the journal. A
/// node that gives another address as its own follows, and nothing is sent there.
///
/// A follower hears of them from the node that it follows, that one from its followers, of those that follow these too;
/// peers find one another in their database. `followed` and `peers` are all that changes, each under its lock, which is
/// held for a look.
final class NodeDirectory: Sendable {
  private struct Followed {
    /// Where the node that this one follows is reached: by what this one was given, whatever that one says of itself.
    let address: NodeAddress
    /// The nodes that it knows, itself first.
    let urls: [String]
  }

  private struct Peers {
    var addresses: [NodeMark: NodeAddress] = [:]
    /// When the database was asked last.
    var asked: ContinuousClock.Instant?
  }

  /// Where other nodes reach this one.
  let url: String
  /// What the names of this node begin with.
  let mark: NodeMark
  private let followers: Followers
  private let listed: NodeURLs
  private let journal: (any SharedJournal)?
  private let followed = Locked<Followed?>(nil)
  private let isFollowing = Atomic(false)
  private let peers = Locked(Peers())

  /// A name that no node is known for has the database asked again, but no more often than this.
  private static let pause = Duration.milliseconds(250)
  /// The most nodes that a node takes over from the one that it follows.
  private static let most = 1_000

  /// Creates the directory of the node that others reach at `url`, which sends requests to `listed` addresses alone.
  init(url: String, followers: Followers, listed: NodeURLs, journal: (any SharedJournal)?) {
    self.url = url
    self.followers = followers
    self.listed = listed
    self.journal = journal
    mark = NodeMark(of: url)
  }

  /// Whether there has been no other node.
  var isAlone: Bool { journal == nil && !followers.wasHeard && !isFollowing.load(ordering: .relaxed) }

  /// Whether this node has heard of the others, where it follows one.
  var isComplete: Bool { !isFollowing.load(ordering: .relaxed) || followed.withLock { $0 != nil } }

  /// From now on there is a node that this one follows.
  func beginFollowing() { isFollowing.store(true, ordering: .relaxed) }

  /// All nodes that this one knows, itself first, but for its peers: what it tells its followers.
  var urls: [String] {
    let known = (followed.withLock { $0?.urls } ?? []) + below
    return [url] + Set(known).subtracting([url]).sorted()
  }

  /// The nodes that follow this one, or one that does, at addresses that are listed.
  var below: [String] { followers.names.filter { listed.contains($0) } }

  /// The nodes that follow this one, or one that does, as the numbers of their streams name them: those that were heard
  /// in the last so many nanoseconds.
  func streamNodes(heardWithin nanoseconds: UInt64) -> Set<UInt64> {
    Set(followers.names(heardWithin: nanoseconds).map { StreamNumbers.node(at: $0) })
  }

  /// What changes with `urls`.
  var digest: String { Self.digest(of: urls) }

  private static func digest(of urls: [String]) -> String {
    let bytes = Array(urls.joined(separator: "\n").utf8)
    return String(JournalDigest.start.linked(to: bytes).value, radix: 16)
  }

  /// Whether what the node that this one follows told is what has this digest.
  func isCurrent(_ digest: String) -> Bool {
    followed.withLock { $0.map { Self.digest(of: $0.urls) == digest } ?? false }
  }

  /// The node at an address, which this one follows, told that it knows these, itself first.
  func follow(_ address: NodeAddress, _ urls: [String]) {
    beginFollowing()
    followed.withLock { $0 = Followed(address: address, urls: Array(urls.prefix(Self.most))) }
  }

  /// Where the node of a mark is reached; nil where none is known. May ask the database.
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

/// The addresses that other nodes may give as their own. `nodes.urls`.
///
/// A node says itself where it is reached, and requests of clients are sent there, with what says who asks. So nothing
/// is sent to an address that an operator has not written down. Addresses are compared as RFC 3986 §6.2 normalizes
/// them: without regard to case, with the scheme's port where none is given, and without a slash at the end.
struct NodeURLs: Sendable {
  private let urls: Set<String>

  /// Creates the list. Throws a fault that names the entry that is not an address.
  init(_ texts: [String] = []) throws(NodeFault) {
    var urls: Set<String> = []
    for text in texts {
      do throws(NodeFault) {
        urls.insert(try Self.normalized(text))
      } catch {
        throw NodeFault("nodes.urls: \(error.reason)", isUnsent: true)
      }
    }
    self.urls = urls
  }

  /// Returns true if an address that a node gives as its own is listed.
  func contains(_ url: String) -> Bool {
    guard !urls.isEmpty, let url = try? Self.normalized(url) else { return false }
    return urls.contains(url)
  }

  private static func normalized(_ text: String) throws(NodeFault) -> String {
    guard !text.hasPrefix("unix:") else { return try NodeAddress(text).description }
    var url = text.lowercased()
    _ = try NodeAddress(url)
    if url.hasSuffix("/") { url.removeLast() }
    guard let range = url.firstRange(of: "://") else { return url }
    // Behind the brackets of an IPv6 address a colon can only stand before the port.
    let host = url[range.upperBound...]
    let hasPort = host.dropFirst(host.hasPrefix("[") ? host.prefix { $0 != "]" }.count : 0).contains(":")
    return hasPort ? url : url + (url.hasPrefix("https:") ? ":443" : ":80")
  }
}
