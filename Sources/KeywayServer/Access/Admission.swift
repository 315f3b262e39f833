import CEL
package import HTTPServer
import HTTPTypes
import KeyValueModel

/// Whether a requester gets to what they ask for. It is asked before anything else about a request, so that those who
/// may not know what there is, do not learn it from a problem.
package struct Admission: Sendable {
  let access: AccessControl
  let streams: StreamRegistry
  /// True if this server carries out writes that other nodes forward.
  let takesForwardedWrites: Bool

  /// Throws `unauthenticated`, `forbidden`, or what is answered where nothing is there.
  package func check(_ context: RequestContext) throws(Problem) {
    let requester = context.requester
    guard !requester.isAdmin else { return }
    if requester.mayFollow, !context.route.audience.hasNodes {
      throw Problem(.forbidden, "this identity is for nodes that follow this server (access.nodes), and nothing else")
    }
    switch context.route.audience {
    case .everybody, .visitors: break
    case .operators: if !access.options.openMetrics { throw refusal(of: requester) }
    case .admins: throw refusal(of: requester)
    case .nodes: if !requester.mayFollow { throw refusal(of: requester) }
    case .identities: if requester.identity == nil { throw AccessControl.unauthenticated }
    // The rules are asked where it is known what is there.
    case .objects: break
    case .streams:
      guard requester.mayHaveStreams else { throw AccessControl.unauthenticated }
      guard context.route.position(of: .stream) != nil else { return }
      guard let id = try? streams.id(of: context[.stream]), requester.mayUse(id, of: streams) else {
        throw requester.identity == nil ? AccessControl.unauthenticated : StreamRegistry.unknownStream
      }
    }
  }

  /// Whether a requester may be answered by another node: one that lacks what the resource wants of all is refused
  /// here.
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
  /// sends it. What is in a batch was sent by the node that sends the batch.
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
      ? AccessControl.unauthenticated : Problem(.forbidden, "this is for admins (access.admin)")
  }
}

/// Finds out who sends a request, and whether their session may be used for it.
struct Identification: Sendable {
  let access: AccessControl
  let origins: Origins
  let readiness: Readiness

  /// Returns the requester of a request for a resource; nil is none that there is. `host` is the name that the request
  /// is for.
  ///
  /// Throws `forbidden` if a page of another origin uses the session of its visitor to change something,
  /// `unauthenticated` for a token that is not good and for a session that has ended, `malformed-request` for two
  /// session cookies, and what `Readiness` says if the store has not been read, which says which sessions there are.
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
    // An ended session is like a bad token, but where the identity makes no difference: so a browser can forget it.
    if cookie != nil, requester.identity == nil, let route, route.audience != .everybody {
      try readiness.check()
      throw AccessControl.endedSession
    }
    return requester
  }
}

extension Requester {
  /// Whether there is anything that the requester could observe by a stream with cells: always with a token, and
  /// without one where the rules let nobody in particular read something.
  fileprivate var mayHaveStreams: Bool {
    switch self {
    case .anybody, .known: true
    case .nobody(let access): !access.viewer.seesNothing
    }
  }

  /// Whether a stream is there for the requester: it is of the `sub` that opened it, and of admins. One that was opened
  /// without a token is of all who know its name and have none either.
  package func mayUse(_ id: StreamID, of streams: StreamRegistry) -> Bool {
    isAdmin || streams.subject(of: id) == identity.map { ExactText($0.subject) }
  }
}
