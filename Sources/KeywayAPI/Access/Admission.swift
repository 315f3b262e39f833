import Expressions
import HTTPServer
import Tokens

/// Whether a requester gets to what they ask for. It is asked before anything else about a request, so that those who
/// may not know what there is, do not learn it from a problem.
struct Admission: Sendable {
  let access: AccessControl
  let streams: StreamRegistry

  /// Throws `unauthenticated`, `forbidden`, or what is answered where nothing is there.
  func check(_ context: RequestContext) throws(Problem) {
    let requester = context.requester
    guard !requester.isAdmin else { return }
    switch context.route.audience {
    case .everybody, .visitors: break
    case .operators: if !access.options.openMetrics { throw refusal(of: requester) }
    case .admins: throw refusal(of: requester)
    case .identities: if requester.identity == nil { throw AccessControl.unauthenticated }
    // The rules are asked where it is known what is there.
    case .objects: break
    case .streams:
      guard let identity = requester.identity else { throw AccessControl.unauthenticated }
      guard context.route.position(of: .stream) != nil else { return }
      let id = try streams.id(of: context[.stream])
      guard streams.subject(of: id) == ExactText(identity.subject) else { throw StreamRegistry.unknownStream }
    }
  }

  /// Whether a requester may be answered by another node: one that lacks what the resource wants of all is refused
  /// here.
  func mayAsk(_ requester: Requester, on route: Route) -> Bool {
    if requester.isAdmin { return true }
    return switch route.audience {
    case .everybody, .visitors, .objects: true
    case .operators, .admins: false
    case .identities, .streams: requester.identity != nil
    }
  }

  private func refusal(of requester: Requester) -> Problem {
    requester.identity == nil
      ? AccessControl.unauthenticated : Problem(.forbidden, "this is for admins (access.admin)")
  }
}
