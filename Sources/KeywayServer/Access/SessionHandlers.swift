import Foundation
import HTTPServer
import HTTPTypes
import KeyValueModel
import Store

/// `/v1/session`: a cookie in the place of a token, for a page's `EventSource`, which can send no header.
struct SessionHandlers: Sendable {
  let access: AccessControl
  let store: Store
  let node: any Node
  let readiness: Readiness

  /// `POST`: begins a session that ends with the token of the `Authorization` header, and sets its cookie.
  func begin(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try context.checkParameters()
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
    return commit(.begin(record), of: request.client, answer(secret)) { code, reason in
      Problem(code, "the session has not begun: \(reason)")
    }
  }

  /// `GET`: the identity of the requester, and its expiry.
  func get(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try context.checkParameters()
    let identity = context.requester.identity
    // Before the store is read, the sessions are not known.
    if identity == nil { try readiness.check() }
    var response = Response.json([
      "identity": identity.map { .object($0.claims) } ?? .null,
      "expires": identity.map { .string(Self.date($0.expires)) } ?? .null,
    ])
    response.fields[.cacheControl] = "no-store"
    return .response(response)
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
    return commit(.end(digest), of: request.client, done) { code, reason in
      Problem(code, "the session has ended on this node alone: \(reason)").with(.setCookie, clearing)
    }
  }

  /// Commits a change of the sessions, and responds with `done` once it is durable.
  private func commit(
    _ write: Sessions.Write, of client: ClientAddress, _ done: Response,
    orRefusing refusal: @escaping @Sendable (_ code: ProblemCode, _ reason: String) -> Problem
  ) -> HandlerResponse {
    .deferred { [store, sessions = access.sessions] completion in
      let isAccepted = store.submit(
        Transaction([]), of: client.hashValue,
        attachment: { sessions.prepare(write, at: $0.revision).bytes }
      ) { outcome, _, failure in
        guard failure == nil, case .success(let commit) = outcome else {
          sessions.conclude(write, isDone: false)
          let reason = failure.map(\.reason) ?? "the commit was refused"
          return completion.respond(refusal(.storeUnavailable, reason).response)
        }
        sessions.conclude(write, isDone: true)
        var response = done
        response.fields[.keywayCursor] = store.cursor(commit.revision).description
        completion.respond(response)
      }
      if !isAccepted { completion.respond(refusal(.overloaded, "too many writes wait; try again").response) }
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
