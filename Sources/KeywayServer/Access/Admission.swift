import CEL
package import HTTPServer
import HTTPTypes
import KeyValueModel

/// The check whether a requester may access a resource. It comes before any other check of a request, so that a problem
/// does not reveal what exists to those who may not know.
package struct Admission: Sendable {
  let access: AccessControl
  let streams: StreamRegistry
  /// True if this server carries out writes that other nodes forward.
  let takesForwardedWrites: Bool

  /// Throws `unauthenticated`, `forbidden`, or the problem of a resource that does not exist.
  package func check(_ context: RequestContext) throws(Problem) {
    let requester = context.requester
    guard !requester.isAdmin else { return }
    if requester.mayFollow, !context.route.audience.hasNodes {
      throw Problem(.forbidden, "this identity may only follow this server, as a node (access.nodes)")
    }
    switch context.route.audience {
    case .everybody, .visitors: break
    case .operators: if !access.options.openMetrics { throw refusal(of: requester) }
    case .admins: throw refusal(of: requester)
    case .nodes: if !requester.mayFollow { throw refusal(of: requester) }
    case .identities: if requester.identity == nil { throw AccessControl.unauthenticated }
    // The rules are checked where it is known which objects exist.
    case .objects: break
    case .streams:
      guard requester.mayHaveStreams else { throw AccessControl.unauthenticated }
      guard context.route.position(of: .stream) != nil else { return }
      guard let id = try? streams.id(of: context[.stream]), requester.mayUse(id, of: streams) else {
        throw requester.identity == nil ? AccessControl.unauthenticated : StreamRegistry.unknownStream
      }
    }
  }

  /// Returns true if another node may answer a requester. A requester who lacks what the resource requires of everybody
  /// is refused here.
  package func mayAsk(_ requester: Requester, on route: Route) -> Bool {
    if requester.isAdmin { return true }
    return switch route.audience {
    case .everybody, .visitors, .objects: true
    case .operators, .admins, .nodes: false
    case .identities: requester.identity != nil
    case .streams: requester.mayHaveStreams
    }
  }

  /// Throws `node-refused`, judged by the `present` state, if a write has a name that nodes give to writes, and no node
  /// sends it. The writes in a batch were sent by the node that sends the batch.
  func checkName(of request: borrowing Request, present: @autoclosure () -> Cursor) throws(Problem) {
    let method = request.method
    guard method != .get, method != .head, request.header(.keywayRequest) != nil, !request.isCarried else { return }
    guard !takesForwardedWrites || access.isOn && !access.isNode(request.header(.keywayNode)) else { return }
    let remedy =
      takesForwardedWrites
      ? "Keyway-Node is not the token of a node (nodes.tokenFile there)"
      : "this server takes no writes from nodes (nodes.followers)"
    throw Problem(.nodeRefused, "Keyway-Request is accepted from nodes only, and \(remedy); nothing was changed")
      .judged(by: present())
  }

  private func refusal(of requester: Requester) -> Problem {
    requester.identity == nil
      ? AccessControl.unauthenticated : Problem(.forbidden, "only admins may do this (access.admin)")
  }
}

/// Identifies the sender of a request, and checks that the session may be used for it.
struct Identification: Sendable {
  let access: AccessControl
  let origins: Origins
  let readiness: Readiness

  /// Returns the requester of a request for a resource; `route` is nil if the resource does not exist. `host` is the
  /// name that the request is for.
  ///
  /// Throws `forbidden` if a page of another origin uses the session of its visitor to change something,
  /// `unauthenticated` for an invalid token and for a session that has ended, `malformed-request` for two session
  /// cookies, and the problem of `Readiness` if the store, which holds the sessions, has not been read.
  func requester(
    of request: borrowing Request, _ route: Route?, host: String?
  ) throws(Problem) -> Requester {
    guard access.isOn else { return access.stranger }
    let method = request.method
    let cookie = try SessionCookie(in: request)
    if cookie != nil, method != .get, method != .head, let origin = request.header(.origin),
      !origins.mayUseCookie(origin, host: host)
    {
      throw Problem(.forbidden, "pages of '\(origin)' may not use the session cookie (access.origins)")
    }
    let requester = try access.requester(of: request, cookie)
    // An ended session is refused like an invalid token, except where the identity makes no difference, so that a
    // browser can forget it.
    if cookie != nil, requester.identity == nil, let route, route.audience != .everybody {
      try readiness.check()
      throw AccessControl.endedSession
    }
    return requester
  }
}

extension Requester {
  /// True if a stream with cells could show the requester anything: always with a token, and without one if the rules
  /// let anonymous clients read something.
  fileprivate var mayHaveStreams: Bool {
    switch self {
    case .anybody, .known: true
    case .nobody(let access): !access.viewer.seesNothing
    }
  }

  /// Returns true if the requester may use a stream: it belongs to the `sub` that opened it, and to admins. A stream
  /// that was opened without a token belongs to all who know its name and have no token either.
  package func mayUse(_ id: StreamID, of streams: StreamRegistry) -> Bool {
    isAdmin || streams.subject(of: id) == identity.map { ExactText($0.subject) }
  }
}
