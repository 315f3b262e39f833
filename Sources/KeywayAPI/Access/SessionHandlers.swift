import Foundation
import HTTPServer
import HTTPTypes
import KeyValueModel
import ModelStore
import Tokens

/// `/v1/session`: a cookie in the place of a token, for a page's `EventSource`, which can send no header.
struct SessionHandlers: Sendable {
  let access: AccessControl
  let store: Store
  let node: Node
  let readiness: Readiness
  let random: @Sendable () -> UInt64

  /// `POST`: sets the cookie for the token of the `Authorization` header.
  func begin(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try context.checkParameters()
    guard let identity = context.requester.identity,
      let token = request.header(.authorization).flatMap(BearerToken.init(authorization:))
    else {
      throw Problem(.unauthenticated, "a session begins with 'Authorization: Bearer' and a token")
        .with(.wwwAuthenticate, "Bearer")
    }
    let session = Session(token: token.text, random: (random(), random()))
    let seconds = max(1, Int(clamping: Int64(max(0, min(identity.expires - access.present, 1e9)))))
    var fields = HTTPFields()
    fields[.setCookie] = session.cookie(isSecure: Self.isSecure(request), seconds: seconds)
    fields[.cacheControl] = "no-store"
    return .response(Response(status: .noContent, fields: fields))
  }

  /// `GET`: who asks, and until when.
  func get(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try context.checkParameters()
    let identity = context.requester.identity
    var response = Response.json([
      "identity": identity.map { .object($0.claims) } ?? .null,
      "expires": identity.map { .string(Self.date($0.expires)) } ?? .null,
    ])
    response.fields[.cacheControl] = "no-store"
    return .response(response)
  }

  /// `DELETE`: ends the session, in the browser, here at once, and everywhere by a commit. Where there can be no commit
  /// the answer says so, and it has ended here nevertheless.
  func end(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try context.checkParameters()
    let noCookie = Session.noCookie(isSecure: Self.isSecure(request))
    let done = Response(status: .noContent, fields: [.setCookie: noCookie])
    // The header may be another's. A session that is no good any more has ended.
    guard let session = Session(in: request), let identity = try? access.identity(of: session) else {
      return .response(done)
    }
    let expires = identity.expires + Double(access.options.leewaySeconds)
    let ended = EndedSession(session, of: identity, now: access.present, expires: expires)
    try access.sessions.end(ended)
    do throws(Problem) {
      try readiness.check()
      guard let forwarder = node.forwarder else { return commit(ended, of: request.client, done) }
      let cookie = (name: HTTPField.Name.cookie.rawName, value: session.field)
      return Self.answering(try forwarder.forward(request, context.route, adding: [cookie]), done)
    } catch {
      throw error.with(.setCookie, noCookie)
    }
  }

  /// Has a commit say that a session has ended.
  private func commit(_ ended: EndedSession, of client: ClientAddress, _ done: Response) -> HandlerResponse {
    let noCookie = done.fields[.setCookie]
    return .deferred { [store, sessions = access.sessions] completion in
      let isAccepted = store.submit(
        Transaction([]), of: client.hashValue, attachment: { _, _ in ended.bytes }
      ) { outcome, _, _ in
        { failure in
          guard failure == nil, case .success(let commit) = outcome else {
            let reason = failure.map(\.reason) ?? "the commit was refused"
            let problem = Problem(.storeUnavailable, "the session has ended on this node alone: \(reason)")
            return completion.respond(problem.with(.setCookie, noCookie).response)
          }
          sessions.note(ended, at: commit.revision)
          var response = done
          response.fields[.keywayCursor] = store.cursor(commit.revision).description
          completion.respond(response)
        }
      }
      if !isAccepted {
        let problem = Problem(.overloaded, "the session has ended on this node alone: too many writes wait; try again")
        completion.respond(problem.with(.setCookie, noCookie).response)
      }
    }
  }

  /// The answer of the node that takes the writes, as this one gives it. Where a session was good here and is not
  /// there, it has ended there.
  private static func answering(_ response: HandlerResponse, _ done: Response) -> HandlerResponse {
    guard case .deferred(let start) = response else { return response }
    return .deferred { completion in
      start(
        completion.preparing { answer in
          let isDone = answer.status.kind == .successful || answer.status == .unauthorized
          var response = isDone ? done : answer
          response.fields[.setCookie] = done.fields[.setCookie]
          response.fields[.keywayCursor] = answer.fields[.keywayCursor]
          return response
        })
    }
  }

  /// Whether the cookie must not go over a plain connection. A trusted proxy may say that the request came over TLS;
  /// otherwise only where the client names this server by a loopback name is there no proxy with TLS in front of it
  /// that could be meant.
  private static func isSecure(_ request: borrowing Request) -> Bool {
    if request.isForwardedOverTLS { return true }
    guard let host = Target.authority(of: request.target) ?? request.header(.hostName) else { return true }
    return !HostNames.isLoopback(host)
  }

  /// A time in seconds since 1970 by RFC 3339, in UTC.
  private static func date(_ seconds: Double) -> String {
    // To the year 9999, the last that RFC 3339 has.
    let bounded = min(max(seconds, 0), 253_402_300_799)
    return Date(timeIntervalSince1970: bounded.rounded(.down)).ISO8601Format()
  }
}
