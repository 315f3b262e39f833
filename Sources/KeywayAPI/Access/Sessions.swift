import HTTPServer
import HTTPTypes
import KeyValueModel
import Locking
import ModelStore
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
    "\(field); Path=/; Max-Age=\(seconds); HttpOnly; SameSite=Strict"
      + (isSecure ? "; Secure" : "")
  }

  /// The `Cookie` field of it, as a browser sends it.
  var field: String { "\(Self.cookieName)=\(name).\(token)" }

  /// The `Set-Cookie` that has a browser forget it.
  static func noCookie(isSecure: Bool) -> String {
    "\(cookieName)=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict" + (isSecure ? "; Secure" : "")
  }
}

/// The sessions that were ended before their tokens expire, by the `sub` of these. Where one `sub` has too many, all of
/// its sessions end whose tokens were issued before; where all together have too many, no more can be ended.
///
/// `contents` is all that changes, under its lock, which is held for a look. Times are in milliseconds since 1970.
final class Sessions: Sendable {
  /// One part in so many is what one `sub` may have of them.
  private static let shares = 1_000

  /// What is remembered of one, or of all of a `sub`.
  private struct Remembered {
    var session: EndedSession
    /// The revision of its commit; nil until there is one.
    var revision: Revision?
  }

  /// What was ended of one `sub`.
  private struct Ended {
    /// Sessions by their names.
    var names: [String: Remembered] = [:]
    /// All sessions of tokens that were issued before it ended, or do not say when.
    var all: Remembered?

    func has(_ name: String, issued: Double?) -> Bool {
      if names[name] != nil { return true }
      return all.map { (issued ?? -.infinity) * 1_000 < Double($0.session.ended) } ?? false
    }

    /// Takes one in. `limit` is how many are remembered by their names.
    mutating func insert(_ new: Remembered, limit: Int) {
      guard let name = new.session.name else { return merge([new]) }
      // Of one that is known already, the revision may be new.
      names[name] = Remembered(session: new.session, revision: new.revision ?? names[name]?.revision)
      guard names.count > limit else { return }
      merge(Array(names.values))
      names = [:]
    }

    /// Has all sessions be ended that were issued before the last of some that are. What says so is of the first
    /// commit: a snapshot that has that must not lose what it says, and nothing is wrong with its saying more.
    private mutating func merge(_ some: [Remembered]) {
      let some = some + (all.map { [$0] } ?? [])
      guard let owner = some.first?.session.owner else { return }
      let session = EndedSession(
        owner: owner, name: nil, ended: some.map(\.session.ended).max() ?? 0,
        expires: some.map(\.session.expires).max() ?? 0)
      all = Remembered(session: session, revision: some.compactMap(\.revision).min())
    }
  }

  private struct Contents {
    var ended: [IdentityMark: Ended] = [:]
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
    contents.withLock { contents in
      guard !contents.ended.isEmpty else { return true }
      return !(contents.ended[IdentityMark(of: identity.subject)]?.has(name, issued: identity.issued) ?? false)
    }
  }

  /// Ends a session, of which no commit says so yet. Throws `overloaded` where too many are remembered.
  func end(_ session: EndedSession) throws(Problem) {
    try contents.withLock { contents throws(Problem) in
      var ended = contents.ended[session.owner] ?? Ended()
      let before = ended.names.count
      ended.insert(Remembered(session: session), limit: limitPerSubject)
      guard contents.count + ended.names.count - before <= limit else {
        throw Problem(.overloaded, "as many sessions have been ended as access.endedSessions allows; try again later")
      }
      contents.count += ended.names.count - before
      contents.ended[session.owner] = ended
    }
  }

  /// A commit says that a session is ended: of this node, of another, or of before a restart. It is so whatever the
  /// limit is.
  func note(_ session: EndedSession, at revision: Revision) {
    contents.withLock { [limitPerSubject] contents in
      var ended = contents.ended[session.owner] ?? Ended()
      let before = ended.names.count
      ended.insert(Remembered(session: session, revision: revision), limit: limitPerSubject)
      contents.count += ended.names.count - before
      contents.ended[session.owner] = ended
    }
  }

  /// Notes those among what was kept with commits that are to be remembered still; `now` is the present.
  func restore(_ attachments: [StoredAttachment], at now: Int64) {
    for attachment in attachments {
      guard let session = EndedSession(attachment.bytes), session.expires > now else { continue }
      note(session, at: attachment.revision)
    }
  }

  /// Those that commits up to one say, as they are kept with commits.
  func kept(upTo last: Revision) -> [StoredAttachment] {
    let remembered = contents.withLock { contents in
      contents.ended.values.flatMap { Array($0.names.values) + ($0.all.map { [$0] } ?? []) }
    }
    return remembered.compactMap { remembered in
      guard let revision = remembered.revision, revision <= last else { return nil }
      let session = remembered.session
      return StoredAttachment(revision: revision, milliseconds: session.ended, bytes: session.bytes)
    }
  }

  /// Forgets those whose tokens have expired by now.
  func sweep(now: Int64) {
    contents.withLock { contents in
      guard !contents.ended.isEmpty else { return }
      contents.ended = contents.ended.compactMapValues { ended in
        var rest = ended
        rest.names = ended.names.filter { $0.value.session.expires > now }
        if let all = rest.all, all.session.expires <= now { rest.all = nil }
        return rest.names.isEmpty && rest.all == nil ? nil : rest
      }
      contents.count = contents.ended.values.reduce(0) { $0 + $1.names.count }
    }
  }
}
