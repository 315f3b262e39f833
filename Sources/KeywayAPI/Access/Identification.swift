import HTTPServer
import HTTPTypes

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
