package import KeywayServer
package import Outbound
import Store

/// The options of a node among others. Without followers, a node to follow, or a journal that it shares, it is a
/// `SingleNode`.
package struct ClusterOptions: NodeOptions {
  /// The value that stands for no file or no node.
  package static let none = "none"

  /// The address at which other nodes reach this one, or `auto`: its host and port. `nodes.url`.
  package var url = "auto"
  /// The node that this one follows, or `none`. `nodes.follow`.
  package var follow = none
  /// The file of the token that this node presents to the node that it follows, or to the peer that it forwards writes
  /// to, or `none`. `nodes.tokenFile`.
  package var tokenFile = none
  /// The file of the certificates, in PEM, with which nodes over TLS are verified, or `none` for the system's.
  /// `nodes.caFile`.
  package var caFile = none
  /// The address of the database where this node and others keep their journal, or `none`. `nodes.journal`.
  package var journal = none
  /// The time without contact with the leader, or with that database, after which this node is not ready, in seconds.
  /// `nodes.staleSeconds`.
  package var staleSeconds = 10
  /// True if other nodes may follow this one. `nodes.followers`.
  package var followers = false
  /// The maximum number of nodes that follow this one. `nodes.followersMaximum`.
  package var followersMaximum = 100
  /// The addresses that other nodes may state as their own; no request is sent to any other. `nodes.urls`.
  package var urls: [String] = []
  /// The limits of the records that are kept for followers.
  package var joining = JoiningLimits()
  /// The limits of forwarded requests.
  package var forwarding = ForwardingLimits()
  /// The maximum number of requests that wait to be forwarded; one client has a quarter. `nodes.forwarding`.
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

  /// Creates a client for requests to other nodes over TLS. It has no thread before the first request.
  package func makeOutboundClient() -> OutboundClient { OutboundClient(caFile: caFile == Self.none ? nil : caFile) }

  package func makeNode(at site: NodeSite) throws -> any Node {
    // Invalid addresses are reported even on a single server.
    let listed = try NodeURLs(urls)
    let url = url == "auto" ? site.url : url
    guard following != nil || followers || site.journal is any SharedJournal else {
      return SingleNode(at: site, url: url)
    }
    return ClusterNode(self, at: site, url: url, listed: listed)
  }

  /// The limits of the records that a journal keeps for followers that fetch a copy, or are further behind than it
  /// would keep otherwise.
  package struct JoiningLimits: Sendable {
    /// The time for which records are kept for one follower, in seconds. `nodes.joinSeconds`.
    package var seconds = 600
    /// The size of the commits that are written meanwhile, in bytes. `nodes.joinBytes`.
    package var bytes = 1 << 30

    /// The defaults.
    package init() {}
  }

  /// The limits of forwarded requests: of writes, to the node that takes them, and of requests with names, to the node
  /// that made them.
  package struct ForwardingLimits: Sendable {
    /// The maximum number of requests sent at the same time, each on a connection of its own, and of batches of writes.
    package var connections = 16
    /// The maximum number of requests that wait: for a connection, or for this node to reach the revision of their
    /// answer.
    package var waiting = 4_096
    /// The maximum number of waiting requests of one client.
    package var waitingPerClient = 1_024
    /// The time limit for an answer, in seconds. `nodes.answerSeconds`.
    package var answerSeconds = 30
    /// The number of writes of other nodes that are remembered, so that each is done once. `nodes.passedWrites`.
    package var remembered = 100_000
    /// The maximum number of relayed streams. `nodes.streams`.
    package var streams = 4_096
    /// The maximum number of relayed streams of one client. `nodes.streamsPerClient`.
    package var streamsPerClient = 3_584

    /// The defaults.
    package init() {}

    /// The limits of the threads that forward requests.
    var threads: RequestLimits {
      var limits = RequestLimits()
      limits.threads = connections
      limits.waiting = waiting
      limits.waitingPerClient = waitingPerClient
      return limits
    }

    /// Returns the limits of answers that wait for this node, for at most `seconds`.
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
  /// The options of the server's node among others.
  package var cluster: ClusterOptions {
    get { node as? ClusterOptions ?? ClusterOptions() }
    set { node = newValue }
  }
}
