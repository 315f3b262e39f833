import Foundation
import HTTPServer
import HTTPTypes
import KeyValueModel
import Tokens

/// `/v1/session`: a cookie in the place of a token, for a page's `EventSource`, which can send no header.
struct SessionHandlers: Sendable {
  let access: AccessControl
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

  /// `DELETE`: ends the session, here and in the browser.
  func end(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try context.checkParameters()
    // The header may be another's.
    if let session = Session(in: request), let identity = try access.identity(of: session) {
      let expires = identity.expires + Double(access.options.leewaySeconds)
      try access.sessions.end(session, of: identity, now: access.present, expires: expires)
    }
    var fields = HTTPFields()
    fields[.setCookie] = Session.noCookie(isSecure: Self.isSecure(request))
    return .response(Response(status: .noContent, fields: fields))
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
