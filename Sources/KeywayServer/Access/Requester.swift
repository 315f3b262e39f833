import HTTPServer
import HTTPTypes
import KeyValueModel

/// Who asks, as far as it is known.
enum Requester: Sendable {
  /// Any client of a server without keys. What it may do is nil where the schema has no rules.
  case anybody(WriteAccess?)
  /// A client without a token.
  case nobody(WriteAccess)
  /// The holder of a verified token.
  case known(KnownRequester)

  /// Whether what is for admins is for them.
  var isAdmin: Bool {
    switch self {
    case .anybody: true
    case .nobody: false
    case .known(let known): known.viewer == nil
    }
  }

  /// True if it may follow this server: an identity of a node, or an admin.
  var mayFollow: Bool {
    if case .known(let known) = self, known.isNode { true } else { isAdmin }
  }

  /// What the rules let them read; nil where they are asked no rule.
  var viewer: Viewer? {
    switch self {
    case .anybody(let access): access?.viewer
    case .nobody(let access): access.viewer
    case .known(let known): known.viewer
    }
  }

  /// The claims, where a token was sent.
  var identity: Identity? {
    if case .known(let known) = self { known.identity } else { nil }
  }

  /// The `sub` of the identity, or nil if nobody is known.
  var subject: String? { identity?.subject }

  /// Whether rules are asked for someone without a token.
  var isUnknown: Bool { viewer != nil && identity == nil }

  /// Who writes, where rules are asked.
  var writeAccess: WriteAccess? {
    switch self {
    case .anybody(let access): access
    case .nobody(let access): access
    case .known(let known): known.writeAccess
    }
  }

  /// What stands for the identity where clients are counted; nil where there is none.
  var mark: IdentityMark? {
    if case .known(let known) = self { known.mark } else { nil }
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
