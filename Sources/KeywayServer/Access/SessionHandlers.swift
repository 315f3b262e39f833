import Foundation
import HTTPServer
import HTTPTypes
import KeyValueModel
import Store

/// `/v1/session`: a cookie in the place of a token, for a page's `EventSource`, which can send no header; and the
/// sign-in with the name and the password of an account.
struct SessionHandlers: Sendable {
  let access: AccessControl
  let passwords: Passwords
  let store: Store
  let node: any Node
  let readiness: Readiness

  /// `POST`: begins a session that ends with the token of the `Authorization` header, and sets its cookie. With a body,
  /// it signs in with a name and a password.
  func begin(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try context.checkParameters()
    if access.options.accounts, !request.body().isEmpty { return try signIn(request, context) }
    guard request.header(.authorization) != nil, let identity = context.requester.identity else {
      throw Problem(.unauthenticated, "to begin a session, send 'Authorization: Bearer' and a token")
        .with(.wwwAuthenticate, "Bearer")
    }
    try readiness.check()
    let seconds = max(1, Int(max(0, min(identity.expires - access.present, 1e9))))
    let answer = { @Sendable [isSecure = SessionCookie.isSecure(request)] (secret: SessionSecret) in
      var fields = FieldSection()
      fields[.setCookie] = SessionCookie.setting(secret, isSecure: isSecure, seconds: seconds)
      fields[.cacheControl] = "no-store"
      return Response(status: .noContent, fields: fields)
    }
    if let forwarded = try node.forward(request, on: context.route, reading: [.setCookie]) {
      return Self.mapping(forwarded) { response in
        guard response.status.kind == .successful else { return response }
        guard let secret = response.fields[.setCookie].flatMap(SessionCookie.secret(set:)) else {
          return Problem(.leaderUnreachable, "the response of the leader has no session; try again").response
        }
        return answer(secret)
      }
    }
    let secret = SessionSecret()
    let record = SessionRecord(secret.digest, of: identity)
    try access.sessions.checkRoom(for: record)
    return .deferred { [self, client = request.client] completion in
      begin(record, of: client, completion, answer(secret))
    }
  }

  /// Commits a session that begins.
  private func begin(
    _ record: SessionRecord, of client: ClientAddress, _ completion: Completion, _ done: Response
  ) {
    commit(.begin(record), of: client, completion, done) { code, reason in
      Problem(code, "the session has not begun: \(reason)")
    }
  }

  /// The body of a sign-in.
  private struct Credentials {
    let name: AccountName?
    let password: String
    /// True if the response has the token of the session instead of a cookie.
    let wantsToken: Bool

    /// Reads a body. Throws `invalid-value`.
    init(_ body: JSONObject) throws(Problem) {
      for (member, _) in body.members where !["name", "password", "token"].contains(member) {
        throw Problem(.invalidValue, "a sign-in has no member '\(member)'; its members are name, password and token")
      }
      guard let name = body["name"]?.asString, let password = body["password"]?.asString else {
        throw Problem(.invalidValue, "name and password must be strings")
      }
      switch body["token"] {
      case .bool(let isWanted)?: wantsToken = isWanted
      case nil: wantsToken = false
      default: throw Problem(.invalidValue, "token must be true or false")
      }
      (self.name, self.password) = (AccountName(name), password)
    }
  }

  /// Signs in with the name and the password of an account, and sets the cookie of a session, or gives its token.
  private func signIn(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    let credentials = try Credentials(try Body.object(of: request))
    // The page of a browser gets a cookie that it cannot read.
    if credentials.wantsToken, request.header(.origin) != nil {
      throw Problem(.forbidden, "a page gets no token: leave 'token' out, and use the session cookie")
    }
    try readiness.check()
    let isSecure = SessionCookie.isSecure(request)
    let seconds = access.options.sessionSeconds
    if let forwarded = try node.forward(request, on: context.route, reading: [.setCookie]) {
      return Self.mapping(forwarded) { response in
        guard let secret = response.fields[.setCookie].flatMap(SessionCookie.secret(set:)) else { return response }
        var response = response
        response.fields[.setCookie] = SessionCookie.setting(secret, isSecure: isSecure, seconds: seconds)
        return response
      }
    }
    let account = credentials.name.flatMap(access.accounts.account)
    let (address, client) = (request.address, request.client)
    return .deferred { [self] completion in
      do throws(Problem) {
        try passwords.check(credentials.password, credentials.name, of: account, for: address, completion) { isRight in
          guard isRight, let account else {
            return completion.respond(
              Problem(.unauthenticated, "the name or the password is wrong").with(.wwwAuthenticate, "Bearer").response)
          }
          begin(account, for: client, completion, isSecure: isSecure, wantsToken: credentials.wantsToken)
        }
      } catch {
        completion.respond(error.response)
      }
    }
  }

  /// Begins the session of an account that has signed in.
  private func begin(
    _ account: Account, for client: ClientAddress, _ completion: Completion, isSecure: Bool, wantsToken: Bool
  ) {
    let secret = SessionSecret()
    let identity = access.identity(of: account)
    let record = SessionRecord(secret.digest, of: identity)
    do throws(Problem) { try access.sessions.checkRoom(for: record) } catch {
      return completion.respond(error.response)
    }
    var body = Self.members(of: identity)
    if wantsToken { body["token"] = .string(secret.text) }
    var response = Response.json(body)
    response.fields[.cacheControl] = "no-store"
    if !wantsToken {
      response.fields[.setCookie] = SessionCookie.setting(
        secret, isSecure: isSecure, seconds: access.options.sessionSeconds)
    }
    begin(record, of: client, completion, response)
  }

  /// `GET`: the identity of the requester, and its expiry.
  func get(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try context.checkParameters()
    let identity = context.requester.identity
    // Before the store is read, the sessions are not known.
    if identity == nil { try readiness.check() }
    var response = Response.json(Self.members(of: identity))
    response.fields[.cacheControl] = "no-store"
    return .response(response)
  }

  private static func members(of identity: Identity?) -> JSONObject {
    [
      "identity": identity.map { .object($0.claims) } ?? .null,
      "expires": identity.map { .string(Self.date($0.expires)) } ?? .null,
    ]
  }

  /// `DELETE`: ends the session of the cookie, on this node at once and everywhere by a commit. If the commit is not
  /// possible, the response says that the session has ended only here.
  func end(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try context.checkParameters()
    let clearing = SessionCookie.clearing(isSecure: SessionCookie.isSecure(request))
    let done = Response(status: .noContent, fields: [.setCookie: clearing])
    guard access.isOn, let digest = try SessionCookie(in: request)?.secret?.digest else { return .response(done) }
    try readiness.check()
    let isKnown = access.sessions.end(digest)
    do throws(Problem) {
      if let forwarded = try node.forward(request, on: context.route, reading: []) {
        return Self.mapping(forwarded) { answer in
          var response = answer.status.kind == .successful ? done : answer
          response.fields[.setCookie] = clearing
          response.fields[.keywayCursor] = answer.fields[.keywayCursor]
          return response
        }
      }
    } catch {
      throw error.with(.setCookie, clearing)
    }
    guard isKnown else {
      // Another peer may have begun it a moment ago.
      return node.refreshed(for: request, store) ?? .response(done)
    }
    return .deferred { [self, client = request.client] completion in
      commit(.end(digest), of: client, completion, done) { code, reason in
        Problem(code, "the session has ended on this node alone: \(reason)").with(.setCookie, clearing)
      }
    }
  }

  /// Commits a change of the sessions, and responds with `done` once it is durable.
  private func commit(
    _ write: Sessions.Write, of client: ClientAddress, _ completion: Completion, _ done: Response,
    orRefusing refusal: @escaping @Sendable (_ code: ProblemCode, _ reason: String) -> Problem
  ) {
    let sessions = access.sessions
    store.commit(for: client, completion, attachment: { sessions.prepare(write, at: $0).bytes }) { isDone in
      sessions.conclude(write, isDone: isDone)
      return done
    } orRefusing: { code, reason in
      refusal(code, reason)
    }
  }

  /// Returns a response of the leader, transformed by `body` into the response of this node.
  private static func mapping(
    _ response: HandlerResponse, _ body: @escaping @Sendable (Response) -> Response
  ) -> HandlerResponse {
    guard case .deferred(let start) = response else { return response }
    return .deferred { completion in start(completion.preparing(body)) }
  }

  /// Formats a time in seconds since 1970 by RFC 3339, in UTC.
  private static func date(_ seconds: Double) -> String {
    // The year 9999 is the last that RFC 3339 has.
    let bounded = min(max(seconds, 0), 253_402_300_799)
    return Date(timeIntervalSince1970: bounded.rounded(.down)).ISO8601Format()
  }
}

extension Store {
  /// Commits an attachment without operations. Calls `conclude` once, with true if the commit is durable; then the
  /// response that it returns is sent.
  func commit(
    for client: ClientAddress, _ completion: Completion, attachment: @escaping @Sendable (Revision) -> [UInt8],
    conclude: @escaping @Sendable (_ isDone: Bool) -> Response,
    orRefusing refusal: @escaping @Sendable (_ code: ProblemCode, _ reason: String) -> Problem
  ) {
    let isAccepted = submit(
      Transaction([]), of: client.hashValue, attachment: { attachment($0.revision) }
    ) { [self] outcome, _, failure in
      guard failure == nil, case .success(let commit) = outcome else {
        _ = conclude(false)
        return completion.respond(
          refusal(.storeUnavailable, failure.map(\.reason) ?? "the commit was refused").response)
      }
      var response = conclude(true)
      response.fields[.keywayCursor] = cursor(commit.revision).description
      completion.respond(response)
    }
    if !isAccepted { completion.respond(refusal(.overloaded, "too many writes wait; try again").response) }
  }
}
