import Foundation
import HTTPServer
import HTTPTypes
import KeyValueModel
import Locking
import Logging
import Tokens

/// Knows who asks: verifies tokens and the cookies that stand for them.
final class AccessControl: Sendable {
  private struct State {
    var file: KeyFile
    var verifier: TokenVerifier
    var tokens: TokenCache
  }

  let options: AccessOptions
  let sessions: Sessions
  let revocations: Revocations
  private let admin: AdminRule
  private let schema: Schema
  /// Who has no token.
  let stranger: Requester
  /// Nil where there are no keys.
  private let state: Locked<State>?
  private let logger: Logger
  /// The time in seconds since 1970.
  private let now: @Sendable () -> Double

  /// Reads the keys where there are some. The rules are those of `schema`; `now` gives seconds since 1970. Throws an
  /// `AccessError`.
  init(
    _ options: AccessOptions, schema: Schema, revocations: Revocations, logger: Logger,
    now: @escaping @Sendable () -> Double
  ) throws(AccessError) {
    self.options = options
    self.schema = schema
    self.revocations = revocations
    let isOpen = options.keys == AccessOptions.none
    let viewer = Viewer(claims: nil, in: schema, isPermittedWithoutRule: isOpen)
    let access = WriteAccess(claims: nil, viewer: viewer, in: schema)
    stranger = isOpen ? .anybody(schema.hasRules ? access : nil) : .nobody(access)
    self.logger = logger
    self.now = now
    admin = try AdminRule(options.admin)
    sessions = Sessions(limit: options.endedSessions)
    guard options.keys != AccessOptions.none else {
      state = nil
      return
    }
    var file = KeyFile(path: options.keys)
    let keys = try file.read()
    if let warning = file.warning(of: keys) { logger.warning("\(warning)") }
    state = Locked(
      State(
        file: file, verifier: Self.verifier(keys, options), tokens: TokenCache(limit: options.cachedTokenBytes)))
  }

  private static func verifier(_ keys: KeySet, _ options: AccessOptions) -> TokenVerifier {
    TokenVerifier(
      keys: keys, issuer: options.issuer == AccessOptions.none ? nil : options.issuer,
      audience: options.audience == AccessOptions.none ? nil : options.audience,
      leeway: Double(options.leewaySeconds), longestLife: Double(options.tokenSeconds))
  }

  /// Whether there are keys, so that it matters who asks.
  var isOn: Bool { state != nil }

  /// The time in seconds since 1970.
  var present: Double { now() }

  /// Who sends a request: the header wins over the cookie. Throws `unauthenticated` for a token that is not good.
  func requester(of request: borrowing Request) throws(Problem) -> Requester {
    guard let state else { return stranger }
    if let authorization = request.header(.authorization) {
      return try requester(ofAuthorization: authorization, state)
    }
    guard let session = Session(in: request) else { return stranger }
    return try requester(of: session, state)
  }

  /// Returns true if a field's value is 'Bearer' and the token of a node: of an identity that may follow this server.
  func isNode(_ authorization: String?) -> Bool {
    guard let state, let authorization else { return false }
    return (try? requester(ofAuthorization: authorization, state))?.isAdmin ?? false
  }

  private func requester(
    ofAuthorization authorization: String, _ state: Locked<State>
  ) throws(Problem) -> Requester {
    try requester(of: authorization, "the token", state) { () throws(Problem) in
      guard let token = BearerToken(authorization: authorization) else {
        throw Self.refusal("the Authorization header is not 'Bearer' with a token")
      }
      return token.text
    }
  }

  /// Whose a session is. Throws `unauthenticated` where it was ended, or its token is not good.
  func identity(of session: Session) throws(Problem) -> Identity? {
    guard let state else { return nil }
    return try requester(of: session, state).identity
  }

  private func requester(of session: Session, _ state: Locked<State>) throws(Problem) -> Requester {
    let requester = try requester(of: session.token, "the session's token", state) { session.token }
    guard let identity = requester.identity, sessions.isOpen(session.name, of: identity) else {
      throw Self.refusal("the session was ended")
    }
    return requester
  }

  /// Who a credential stands for: a header's value or a cookie's. What token is in it is only asked where it is not
  /// known as it stands. `name` is what a problem calls the token.
  private func requester(
    of credential: String, _ name: String, _ state: Locked<State>, token find: () throws(Problem) -> String
  ) throws(Problem) -> Requester {
    let (verifier, known) = state.withLock { ($0.verifier, $0.tokens[credential]) }
    let token = known == nil ? try find() : ""
    do throws(TokenDefect) {
      if let known {
        try verifier.check(known.identity, now: now())
        try check(known.identity)
        return .known(known)
      }
      // Verified outside of the lock: a signature takes long.
      let identity = try verifier.verify(token, now: now())
      try check(identity)
      let viewer = admin.holds(of: identity.claims) ? nil : Viewer(claims: identity.claims, in: schema)
      let holder = KnownRequester(identity, viewer: viewer, in: schema)
      state.withLock { state in
        // Keys that were read meanwhile may not have verified it.
        if state.verifier.keys.has(identity.key) { state.tokens.remember(credential, holder) }
      }
      return .known(holder)
    } catch {
      throw Self.refusal("\(name) \(error.reason)")
    }
  }

  /// Asked at each use, also of a token that was verified before.
  private func check(_ identity: Identity) throws(TokenDefect) {
    if revocations.refuses(identity) { throw .revoked }
  }

  /// `unauthenticated` for a token that is not good (RFC 6750 §3).
  private static func refusal(_ detail: String) -> Problem {
    Problem(.unauthenticated, detail).with(.wwwAuthenticate, #"Bearer error="invalid_token""#)
  }

  /// `unauthenticated` where a token is needed and none was sent.
  static var unauthenticated: Problem {
    Problem(.unauthenticated, "this is not for those without a token").with(.wwwAuthenticate, "Bearer")
  }

  // MARK: Keys

  /// Reads the keys again where their file has changed, or in any case; what is wrong with it is logged, and the former
  /// keys stay.
  func reloadKeys(always: Bool = false) {
    guard let state else { return }
    let outcome = state.withLock { state -> Result<(count: Int, warning: String?), AccessError>? in
      guard always || state.file.hasChanged else { return nil }
      do throws(AccessError) {
        let keys = try state.file.read()
        state.verifier = Self.verifier(keys, options)
        state.tokens.removeAll()
        return .success((keys.count, state.file.warning(of: keys)))
      } catch {
        return .failure(error)
      }
    }
    switch outcome {
    case .success((let count, let warning))?:
      logger.notice("keys read", metadata: ["keys": "\(count)"])
      if let warning { logger.warning("\(warning)") }
    case .failure(let error)?: logger.error("keys not read; the former stay", metadata: ["reason": "\(error)"])
    case nil: break
    }
  }

  /// Says of the owner of a stream whether it may go on: the token has not expired and is not revoked, its key is still
  /// there, and the session has not been ended.
  var validity: (StreamOwner) -> Bool {
    guard let verifier = state?.withLock({ $0.verifier }) else { return { _ in true } }
    let now = now()
    return { [revocations, sessions] owner in
      let identity = owner.identity
      return (try? verifier.check(identity, now: now)) != nil && verifier.keys.has(identity.key)
        && !revocations.refuses(identity) && owner.session.map { sessions.isOpen($0, of: identity) } ?? true
    }
  }
}

/// The token of an `Authorization` header (RFC 6750 §2.1).
struct BearerToken {
  let text: String

  /// Nil for another scheme, and where no token follows.
  init?(authorization: String) {
    // By bytes: a header comes with every request, and tokens are long.
    let space = UInt8(ascii: " ")
    let bytes = authorization.utf8
    guard let end = bytes.firstIndex(of: space), authorization[..<end].lowercased() == "bearer" else { return nil }
    guard let start = bytes[end...].firstIndex(where: { $0 != space }) else { return nil }
    let token = authorization[start...]
    // In one piece of memory, where that is so.
    let hasSpace = token.utf8.withContiguousStorageIfAvailable { $0.contains(space) } ?? token.utf8.contains(space)
    guard !hasSpace else { return nil }
    text = String(token)
  }
}
