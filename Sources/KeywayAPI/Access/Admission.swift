import HTTPServer
import HTTPTypes
import KeyValueModel
import Tokens

/// Whether a requester gets to what they ask for. It is asked before anything else about a request, so that those who
/// may not know what there is, do not learn it from a problem.
struct Admission: Sendable {
  let access: AccessControl
  let streams: StreamRegistry

  /// Throws `unauthenticated`, `forbidden`, or what is answered where nothing is there.
  func check(_ method: HTTPRequest.Method, _ context: RequestContext) throws(Problem) {
    let requester = context.requester
    guard !requester.mayDoEverything else { return }
    switch context.route.audience {
    case .everybody: break
    case .operators: if !access.options.openMetrics { throw refusal(of: requester) }
    case .admins: throw refusal(of: requester)
    case .identities: if requester.identity == nil { throw AccessControl.unauthenticated }
    case .objects: try checkObjects(method, context)
    case .streams:
      guard let identity = requester.identity else { throw AccessControl.unauthenticated }
      guard context.route.position(of: .stream) != nil else { return }
      let id = try streams.id(of: context[.stream])
      guard streams.owners.subject(of: id) == identity.subject else { throw StreamRegistry.unknownStream }
    }
  }

  private func refusal(of requester: Requester) -> Problem {
    requester.identity == nil
      ? AccessControl.unauthenticated : Problem(.forbidden, "this is for admins (access.admin)")
  }

  /// The schema has no rules, so nobody but admins may read or write an object: for the others none is there.
  private func checkObjects(_ method: HTTPRequest.Method, _ context: RequestContext) throws(Problem) {
    let isReading = method == .get || method == .head
    let isObject = context.route.position(of: .id) != nil
    // A fetch gives what may be read.
    if isReading, !isObject { return }
    guard context.requester.identity != nil else { throw AccessControl.unauthenticated }
    let isCreation = !isObject || method == .put && context.route.position(of: .keyPath) == nil
    guard isCreation else { throw Problem(.unknownObject, "there is no \(context[.entity])/\(context[.id])") }
    throw Problem(.forbidden, "no rule lets you do this")
  }
}
