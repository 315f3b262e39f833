import Expressions
import Foundation
import HTTPServer
import HTTPTypes
import Locking
import Tokens

/// What the session cookie says: a name of the session, and the token that it stands for.
struct Session: Sendable {
  static let cookieName = "keyway_session"
  /// The longest name that a session gets: two numbers of 64 bits to the base 36.
  private static let maximumNameBytes = 26

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
      guard value.count == 2, (1...Self.maximumNameBytes).contains(value[0].utf8.count) else { return nil }
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

/// The sessions that were ended before their tokens expire, by the `sub` of these. Where one `sub` has too many, all of
/// its sessions end whose tokens were issued before; where all together have too many, no more can be ended.
final class Sessions: Sendable {
  /// One part in so many is what one `sub` may have of them.
  private static let shares = 1_000

  /// What was ended of one `sub`. Times are in seconds since 1970.
  private struct Ended {
    /// The names of sessions, with the times when their tokens expire.
    var names: [String: Double] = [:]
    /// All sessions of tokens that were issued before a time, or do not say when, until the last of those expires that
    /// were ended by name.
    var all: (issuedBefore: Double, expires: Double)?

    func has(_ name: String, of identity: Identity) -> Bool {
      if names[name] != nil { return true }
      return all.map { identity.issued ?? -.infinity < $0.issuedBefore } ?? false
    }
  }

  private struct Contents {
    var ended: [ExactText: Ended] = [:]
    var count = 0
  }

  private let limit: Int
  private let limitPerSubject: Int
  private let contents = Locked(Contents())

  init(limit: Int) {
    self.limit = limit
    limitPerSubject = max(1, limit / Self.shares)
  }

  /// Whether the session of a name has not been ended.
  func isOpen(_ name: String, of identity: Identity) -> Bool {
    contents.withLock { !($0.ended[ExactText(identity.subject)]?.has(name, of: identity) ?? false) }
  }

  /// Ends a session now, of a token that is good until a time; both are seconds since 1970. Throws `overloaded` where
  /// too many are remembered.
  func end(_ session: Session, of identity: Identity, now: Double, expires: Double) throws(Problem) {
    try contents.withLock { contents throws(Problem) in
      var ended = contents.ended[ExactText(identity.subject)] ?? Ended()
      let before = ended.names.count
      ended.names[session.name] = expires
      if ended.names.count > limitPerSubject {
        ended.all = (now, max(ended.all?.expires ?? 0, ended.names.values.max() ?? 0))
        ended.names = [:]
      }
      guard contents.count + ended.names.count - before <= limit else {
        throw Problem(.overloaded, "as many sessions have been ended as access.endedSessions allows; try again later")
      }
      contents.count += ended.names.count - before
      contents.ended[ExactText(identity.subject)] = ended
    }
  }

  /// Forgets those whose tokens have expired by now, in seconds since 1970.
  func sweep(now: Double) {
    contents.withLock { contents in
      contents.ended = contents.ended.compactMapValues { ended in
        var rest = ended
        rest.names = ended.names.filter { $0.value > now }
        if let all = rest.all, all.expires <= now { rest.all = nil }
        return rest.names.isEmpty && rest.all == nil ? nil : rest
      }
      contents.count = contents.ended.values.reduce(0) { $0 + $1.names.count }
    }
  }
}
