import HTTPServer
import HTTPTypes
import KeyValueModel
import Store

/// Decides which node answers a request, and when.
///
/// A server on its own answers each of them itself: `SingleNode`. Where several nodes share their objects, another node
/// may have to answer, this one may have to catch up first, and a write that reaches two nodes is carried out once.
protocol RequestPlacement: Sendable {
  /// Answers a request to a resource here, passes it on, or has it wait.
  ///
  /// - Parameter resolve: Finds out who sends the request and what of the resource it is for. Throws for a request that
  ///   no node would answer.
  func respond(
    to request: borrowing Request, on route: Route,
    _ resolve: (borrowing Request) throws(Problem) -> ResolvedRequest
  ) throws(Problem) -> HandlerResponse
}

/// A request whose sender and purpose are known, before anything is done about it.
struct ResolvedRequest: Sendable {
  let route: Route
  let target: Target
  let requester: Requester
  /// What carries the request out: the action of its method, or what opens the stream.
  let action: Route.Action
  /// True if the answer is an event stream.
  let isStream: Bool

  /// The context for the action.
  func context(of method: HTTPRequest.Method) -> RequestContext {
    RequestContext(
      route: route, target: target, requester: requester, parameters: route.parameterNames(method, isStream))
  }
}

/// The placement of a server on its own.
struct SingleNode: RequestPlacement {
  let store: Store
  let admission: Admission
  /// Requests that wait for a revision that they name (the specification, section 13).
  let waits: RevisionWaits

  func respond(
    to request: borrowing Request, on route: Route,
    _ resolve: (borrowing Request) throws(Problem) -> ResolvedRequest
  ) throws(Problem) -> HandlerResponse {
    let resolved = try resolve(request)
    if !route.isAlwaysServed, let cursor = request.header(.keywayCursor).flatMap({ Cursor($0) }),
      let wait = try waits.response(to: request, until: cursor, in: store)
    {
      return wait
    }
    let context = resolved.context(of: request.method)
    try admission.check(context)
    return try resolved.action.handle(request, context)
  }
}
