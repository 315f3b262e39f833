import HTTPServer
import HTTPTypes
import KeyValueModel
import KeywayServer
import Store

/// The placement of a node among others: a follower forwards writes to the node that it follows, a peer to the one that
/// appended last, and each of them forwards a request that names a stream or a page to the node that made it.
struct NodePlacement: RequestPlacement {
  let node: ClusterNode
  let ways: ClusterNode.Ways
  let store: Store
  let admission: Admission
  let passedWrites: PassedWriteHandlers
  /// The time without contact with the other nodes after which tokens are no longer accepted, in seconds; 0 means no
  /// limit. `access.staleSeconds`.
  let staleSeconds: Int

  func respond(
    to request: borrowing Request, on route: Route,
    _ resolve: (borrowing Request) throws(Problem) -> RequestContext
  ) throws(Problem) -> HandlerResponse {
    try BatchHandler.check(request, route)
    let outcome = request.outcome as? PeerWrites.Outcome
    let context: RequestContext
    // Sessions begin and end by commits: a commit while the request is resolved may change the requester.
    let revision = store.revision
    do throws(Problem) {
      context = try resolve(request)
    } catch {
      // A session that another node has begun may be known here once this node reaches the state that the request
      // names.
      let isOfCookie = error.code == .unauthenticated && request.header(.authorization) == nil
      if !route.isAlwaysServed, isOfCookie, let wait = try node.wait(for: request, judgedAt: revision, store) {
        return wait
      }
      throw error
    }
    if !route.isAlwaysServed, let elsewhere = try elsewhere(request, context, judgedAt: revision, outcome) {
      return elsewhere
    }
    try admission.check(context)
    return try carryOut(request, context, outcome)
  }

  /// Returns another node's answer to a request, or a wait for it or for a revision; nil if this node answers now.
  private func elsewhere(
    _ request: borrowing Request, _ context: RequestContext, judgedAt revision: Revision,
    _ outcome: PeerWrites.Outcome?
  ) throws(Problem) -> HandlerResponse? {
    let (route, method) = (context.route, request.method)
    if context.requester.identity != nil, route.audience != .nodes {
      try node.checkRevocations(within: staleSeconds)
    }
    if route.isForwarded, method != .get, method != .head, let forwarder = ways.leaderWrites {
      return try forwarder.forward(request, route)
    }
    if !node.directory.isAlone, admission.mayAsk(context.requester, on: route),
      let passed = try ways.passing.response(to: request, route, context.target, isStream: context.isStream)
    {
      return passed
    }
    if let wait = try node.wait(for: request, judgedAt: revision, store) { return wait }
    guard route.isCommitted(by: method) else { return nil }
    return try atPeers(request, route, outcome)
  }

  /// Forwards a write to the peer that appended last, or asks peers for the streams that it names; nil if this node
  /// carries it out now.
  private func atPeers(
    _ request: borrowing Request, _ route: Route, _ outcome: PeerWrites.Outcome?
  ) throws(Problem) -> HandlerResponse? {
    var handedBack: PeerWrites.Turn?
    if case .handedBack(let turn)? = outcome { handedBack = turn }
    guard request.outcome == nil || handedBack != nil else { return nil }
    if let passed = try ways.peerWrites?.response(to: request, route, handedBack) { return passed }
    return try node.inquiry.response(to: request, route)
  }

  /// Carries out a request here; a write with a name among nodes is carried out only once.
  private func carryOut(
    _ request: borrowing Request, _ context: RequestContext, _ outcome: PeerWrites.Outcome?
  ) throws(Problem) -> HandlerResponse {
    let handle = context.action.handle
    guard context.route.isCommitted(by: request.method) else { return try handle(request, context) }
    let turn =
      switch outcome {
      case .turn(let turn)?, .handedBack(let turn)?: turn
      case nil: PeerWrites.Turn(try PassedWrite(of: request), passedWrites.writes)
      }
    let wayBack = ways.peerWrites?.wayBack(request, turn)
    if let write = turn.write {
      return try passedWrites.once(write, turn.doubt, wayBack, request, context, handle)
    }
    guard wayBack != nil || request.outcome is NamedStreams else { return try handle(request, context) }
    var context = context
    context.nodes = ClusterContext(request, as: nil, passedWrites.writes, wayBack)
    return try handle(request, context)
  }
}
