package import HTTPServer
package import HTTPTypes
package import KeyValueModel
package import Store
import Support

/// The part of a server that knows of other servers with the same objects.
///
/// A server on its own has a `SingleNode`, which knows of no other. The module `Cluster` has the node that follows
/// another one, is followed, or shares its journal with peers. Nothing else in this module depends on which node it is.
///
/// Life cycle: the node is made with the address that is listened on; `attach` follows once the other parts exist,
/// `recovered` and `start` once the store has read its journal, `beginDraining` and `stop` at the end. The other
/// members are called from any thread, some of them also after `stop`.
package protocol Node: Sendable {
  /// The address at which other nodes reach this server.
  var url: String { get }
  /// The numbers of the streams of this server, which tell them from those of others. Nil if there are no others: then
  /// all streams with which objects last are its own, or were those of an earlier time and are gone.
  var streamNumbers: StreamNumbers? { get }
  /// True if this server carries out writes that other nodes forward, and respects their names (`Keyway-Request`).
  var takesForwardedWrites: Bool { get }

  /// Connects the node to the other parts of its server, before the first request.
  ///
  /// - Parameter restore: Restores what was kept with commits of other nodes.
  /// - Returns: The placement, which decides which node answers a request.
  func attach(
    to parts: ServerParts, _ admission: Admission, _ conditions: ConditionLog,
    restore: @escaping @Sendable ([StoredAttachment]) -> Void
  ) -> any RequestPlacement
  /// Returns the resources that other nodes request from this server.
  func routes(in parts: ServerParts) -> [Route]
  /// Restores what was kept with commits that were read, oldest first.
  func restore(_ attachments: [StoredAttachment])
  /// Notes that the store has read its journal, and that everything kept with commits is restored.
  func recovered(_ store: Store)
  /// Starts what the node does by itself, if the store serves.
  func start(_ store: Store)

  /// Notes a change in the condition of the store.
  func note(_ notice: StoreNotice)
  /// Notes that a revision was published.
  func reached(_ revision: Revision)
  /// Notes that a stream of this server has ended.
  func streamEnded(_ id: StreamID)
  /// Ends the objects that last with streams which are gone, or reports these streams to the node that takes writes.
  func endLeases(_ store: Store, _ streams: StreamRegistry)

  /// Forwards a request that changes sessions to the node that takes writes. Returns nil on that node itself.
  ///
  /// - Parameter names: The fields to copy from the response of the other node, for the caller.
  func forward(
    _ request: borrowing Request, on route: Route, reading names: [HTTPField.Name]
  ) throws(Problem) -> HandlerResponse?
  /// Makes a request wait until this server has what others had committed when the request came. Returns nil if there
  /// is nothing to wait for, or if the request has waited.
  func refreshed(for request: borrowing Request, _ store: Store) -> HandlerResponse?

  /// True if writes that the store refuses do not make this server unready yet.
  var toleratesRefusals: Bool { get }
  /// Throws `leader-unreachable` or `store-unavailable` if this server has been behind others for too long.
  func checkHearing() throws(Problem)
  /// Returns the members of `/v1/status`: the role of the server, and how far it is behind others.
  func status(_ store: Store) -> JSONObject
  /// Writes the node's metrics to a registry.
  func export(_ store: Store, to registry: PrometheusRegistry)

  /// Ends the waits of requests; no request waits from now on.
  func beginDraining()
  /// Ends the node's communication with other nodes.
  func stop()
}

extension Node {
  /// The prefix of the names of this server's streams and pages.
  package var mark: String { NodeMark(of: url).text }
}

/// The options of a server's node.
package protocol NodeOptions: Sendable {
  /// Makes the node of a server at a place. Throws if the options are not valid.
  func makeNode(at site: NodeSite) throws -> any Node
}

/// The place of a server, known before it has any other part.
package struct NodeSite: Sendable {
  /// The address that is listened on, or `unix:` and the path of a socket.
  package let host: String
  /// The port that is listened on.
  package let port: UInt16
  /// The journal that keeps the commits.
  package let journal: any TransactionJournal
  /// True if the server identifies its clients (`access.keys`).
  package let hasAccess: Bool
  /// The limits on waiting for a revision.
  package let waits: RevisionWaits.Limits

  /// The URL of the address and the port.
  package var url: String {
    if host.hasPrefix("unix:") { return host }
    return "http://\(host.contains(":") ? "[\(host)]" : host):\(port)"
  }
}

// MARK: - Requests

/// A rule that decides which node answers a request, and when.
///
/// A server on its own answers every request itself. If several nodes have the same objects, another node may have to
/// answer, this one may have to catch up first, and a write that reaches two nodes is carried out once.
package protocol RequestPlacement: Sendable {
  /// Answers a request to a resource here, forwards it, or makes it wait.
  ///
  /// - Parameter resolve: Identifies the sender of the request and the action that it is for. Throws for a request that
  ///   no node would answer.
  func respond(
    to request: borrowing Request, on route: Route,
    _ resolve: (borrowing Request) throws(Problem) -> RequestContext
  ) throws(Problem) -> HandlerResponse
}

/// The part of other nodes in a write that this one carries out.
package protocol NodesContext: AnyObject, Sendable {
  /// The streams of other nodes that the write names for objects to last with, with their numbers.
  var streams: [String: UInt64] { get }
  /// The name of a write that a node has forwarded, with what it stands for; nil for a write that a client sent here.
  var name: BoundWrite? { get }
  /// Returns the response of another node that has carried out the write under this name meanwhile, or nil if there is
  /// none.
  func precedent() -> Response?
  /// Returns the response to the write if this node gives up because other nodes appended first again and again, or nil
  /// if this node keeps trying.
  func handedBack() -> Response?
}

// MARK: - A server on its own

/// The node of a server on its own: it answers every request.
package struct SingleNode: Node {
  /// The options of a server on its own: there is nothing to choose.
  package struct Options: NodeOptions {
    /// Creates the only options.
    package init() {}

    package func makeNode(at site: NodeSite) -> any Node { SingleNode(at: site, url: site.url) }
  }

  package let url: String
  package var streamNumbers: StreamNumbers? { nil }
  /// Requests that wait for a revision that they name (the specification, section 13).
  private let waits: RevisionWaits

  /// Creates the node of a server that announces `url` as its address.
  package init(at site: NodeSite, url: String) {
    self.url = url
    waits = RevisionWaits(site.waits) { UInt64(SystemClock.nanoseconds) }
  }

  package func attach(
    to parts: ServerParts, _ admission: Admission, _ conditions: ConditionLog,
    restore: @escaping @Sendable ([StoredAttachment]) -> Void
  ) -> any RequestPlacement {
    SinglePlacement(store: parts.store, admission: admission, waits: waits)
  }

  package func reached(_ revision: Revision) { waits.reached(revision) }

  package func endLeases(_ store: Store, _ streams: StreamRegistry) {
    store.endLeases { streams.exists(StreamID($0)) }
  }

  package func status(_ store: Store) -> JSONObject {
    ["role": .string("single"), "node": .string(url), "behind": .integer(0), "behindSeconds": .integer(0)]
  }

  package func export(_ store: Store, to registry: PrometheusRegistry) {
    registry.set(.requestsBehind, to: Double(waits.count))
    for metric in [Metric.followers, .revisionsBehind, .silenceSeconds, .forwardedWrites, .relayedStreams] {
      registry.set(metric, to: 0)
    }
  }

  package func beginDraining() { waits.close() }

  package var takesForwardedWrites: Bool { false }
  package func routes(in parts: ServerParts) -> [Route] { [] }
  package func restore(_ attachments: [StoredAttachment]) {}
  package func recovered(_ store: Store) {}
  package func start(_ store: Store) {}
  package func note(_ notice: StoreNotice) {}
  package func streamEnded(_ id: StreamID) {}
  package func forward(_ request: borrowing Request, on route: Route, reading names: [HTTPField.Name])
    -> HandlerResponse?
  {
    nil
  }
  package func refreshed(for request: borrowing Request, _ store: Store) -> HandlerResponse? { nil }
  package var toleratesRefusals: Bool { false }
  package func checkHearing() {}
  package func stop() {}
}

/// Answers each request here, once the store has reached the revision that the request names.
private struct SinglePlacement: RequestPlacement {
  let store: Store
  let admission: Admission
  let waits: RevisionWaits

  func respond(
    to request: borrowing Request, on route: Route,
    _ resolve: (borrowing Request) throws(Problem) -> RequestContext
  ) throws(Problem) -> HandlerResponse {
    let revision = store.revision
    let context = try resolve(request)
    if !route.isAlwaysServed, let cursor = request.header(.keywayCursor).flatMap({ Cursor($0) }),
      let wait = try waits.response(to: request, until: cursor, judgedAt: revision, in: store)
    {
      return wait
    }
    try admission.check(context)
    return try context.action.handle(request, context)
  }
}
