import Foundation
import HTTPServer
import HTTPTypes
import Locking

/// What the session cookie says: a name of the session, and the token that it stands for.
struct Session: Sendable {
  static let cookieName = "keyway_session"

  let name: String
  let token: String

  /// A new session of a token.
  init(token: String, random: (UInt64, UInt64)) {
    name = String(random.0, radix: 36) + String(random.1, radix: 36)
    self.token = token
  }

  /// The session of a request's cookies; nil where there is none (RFC 6265 §5.4: the first of its name counts).
  init?(in request: borrowing Request) {
    guard let cookies = request.header(.cookie) else { return nil }
    for pair in cookies.split(whereSeparator: { $0 == ";" || $0 == "," }) {
      let parts = pair.drop { $0 == " " }.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2, parts[0] == Self.cookieName else { continue }
      let value = parts[1].split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
      guard value.count == 2 else { return nil }
      (name, token) = (String(value[0]), String(value[1]))
      return
    }
    return nil
  }

  /// The `Set-Cookie` of the session: until the browser closes or the token expires.
  func cookie(isSecure: Bool, seconds: Int) -> String {
    "\(Self.cookieName)=\(name).\(token); Path=/; Max-Age=\(seconds); HttpOnly; SameSite=Strict"
      + (isSecure ? "; Secure" : "")
  }

  /// The `Set-Cookie` that has a browser forget it.
  static func noCookie(isSecure: Bool) -> String {
    "\(cookieName)=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict" + (isSecure ? "; Secure" : "")
  }
}

/// The sessions that were ended before their tokens expire. Of more than `limit` the one that would expire first is
/// forgotten.
final class Sessions: Sendable {
  private let limit: Int
  private let ended = Locked<[String: Double]>([:])

  init(limit: Int) { self.limit = limit }

  /// Whether a session has not been ended.
  func isOpen(_ session: Session) -> Bool { ended.withLock { $0[session.name] == nil } }

  /// Ends a session whose token expires at a time, in seconds since 1970.
  func end(_ session: Session, expires: Double, now: Double) {
    ended.withLock { ended in
      ended[session.name] = expires
      guard ended.count > limit else { return }
      ended = ended.filter { $0.value > now }
      if ended.count > limit, let first = ended.min(by: { $0.value < $1.value }) { ended[first.key] = nil }
    }
  }
}
