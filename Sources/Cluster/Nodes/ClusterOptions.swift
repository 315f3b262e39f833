package import KeywayServer
package import Outbound
import Store

/// The options of a node among others. Without followers, a node to follow, or a journal that it shares, it is a
/// `SingleNode`.
package struct ClusterOptions: NodeOptions {
  /// The word for a file or node that there is not.
  package static let none = "none"

  /// The address at which other nodes reach this one, or `auto`: its host and port. `nodes.url`.
  package var url = "auto"
  /// The node that this one follows, or `none`. `nodes.follow`.
  package var follow = none
  /// The file of the token that this node shows the one that it follows, or the peer that it passes writes on to, or
  /// `none`. `nodes.tokenFile`.
  package var tokenFile = none
  /// The file of the certificates by which nodes behind TLS are trusted, in PEM, or `none` for the system's.
  /// `nodes.caFile`.
  package var caFile = none
  /// The address of the database where this node and others keep their journal, or `none`. `nodes.journal`.
  package var journal = none
  /// The seconds of silence of the node that it follows, or of that database, after which this one is not ready.
  /// `nodes.staleSeconds`.
  package var staleSeconds = 10
  /// True if other nodes may follow this one. `nodes.followers`.
  package var followers = false
  /// The maximum number of nodes that follow this one. `nodes.followersMaximum`.
  package var followersMaximum = 100
  /// The addresses that other nodes may give as their own; nothing is sent to any other. `nodes.urls`.
  package var urls: [String] = []
  /// The bounds of what is kept of the journal for followers.
  package var joining = JoiningLimits()
  /// The bounds of writes that are passed on.
  package var forwarding = ForwardingLimits()
  /// The most requests that wait to be passed on; one client has a quarter. `nodes.forwarding`.
  package var forwardedRequests: Int {
    get { forwarding.waiting }
    set {
      forwarding.waiting = newValue
      forwarding.waitingPerClient = max(1, newValue / 4)
    }
  }

  /// The plan by which this node follows another one; nil if it follows none.
  package var following: Following.Plan?

  /// The defaults.
  package init() {}

  /// Makes a client for requests to other nodes over TLS. It has no thread before the first request.
  package func makeOutboundClient() -> OutboundClient { OutboundClient(caFile: caFile == Self.none ? nil : caFile) }

  package func makeNode(at site: NodeSite) throws -> any Node {
    // Also a server on its own is told that an address is not one.
    let listed = try NodeURLs(urls)
    let url = url == "auto" ? site.url : url
    guard following != nil || followers || site.journal is any SharedJournal else {
      return SingleNode(at: site, url: url)
    }
    return ClusterNode(self, at: site, url: url, listed: listed)
  }

  /// The bounds of what a journal keeps for followers that fetch a copy, or are behind what it would keep otherwise.
  package struct JoiningLimits: Sendable {
    /// The seconds for which it is kept for one. `nodes.joinSeconds`.
    package var seconds = 600
    /// The bytes of commits that are written meanwhile. `nodes.joinBytes`.
    package var bytes = 1 << 30

    /// The defaults.
    package init() {}
  }

  /// The bounds of requests that are passed on: writes to the node that takes them, names to the one that made them.
  package struct ForwardingLimits: Sendable {
    /// The most that are sent at a time, each on a connection of its own, and as many batches of writes.
    package var connections = 16
    /// The most that wait: for a connection, or for this node to have what they did.
    package var waiting = 4_096
    /// The same of one client.
    package var waitingPerClient = 1_024
    /// The seconds that an answer is waited for. `nodes.answerSeconds`.
    package var answerSeconds = 30
    /// The number of writes of other nodes that are remembered, to be done once. `nodes.passedWrites`.
    package var remembered = 100_000
    /// The most streams of other nodes that are sent on. `nodes.streams`.
    package var streams = 4_096
    /// The most that are sent on to one client. `nodes.streamsPerClient`.
    package var streamsPerClient = 3_584

    /// The defaults.
    package init() {}

    /// The threads by which requests are passed on.
    var threads: RequestLimits {
      var limits = RequestLimits()
      limits.threads = connections
      limits.waiting = waiting
      limits.waitingPerClient = waitingPerClient
      return limits
    }

    /// The waits of answers for this node; `seconds` is how long they are.
    func waits(seconds: Int) -> RevisionWaits.Limits {
      var limits = RevisionWaits.Limits()
      limits.seconds = seconds
      limits.requests = waiting
      limits.requestsPerClient = waitingPerClient
      return limits
    }
  }
}

extension KeywayServer.Configuration {
  /// The options of its node among others.
  package var cluster: ClusterOptions {
    get { node as? ClusterOptions ?? ClusterOptions() }
    set { node = newValue }
  }
}
