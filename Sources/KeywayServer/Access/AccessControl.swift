import Foundation
import HTTPServer
import HTTPTypes
import KeyValueModel
import Logging
import Support

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
  private let nodes: AdminRule
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
    admin = try AdminRule(options.admin, of: "access.admin")
    nodes = try AdminRule(options.nodes, of: "access.nodes")
    sessions = Sessions(options.sessions, leeway: options.leewaySeconds)
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

  /// Returns the requester of a request: the header wins over the cookie. A cookie whose session has ended, or never
  /// was, makes nobody known. Throws `unauthenticated` for a token that is not good.
  func requester(of request: borrowing Request, _ cookie: SessionCookie?) throws(Problem) -> Requester {
    guard let state else { return stranger }
    if let authorization = request.header(.authorization) {
      return try requester(ofHeader: authorization, state)
    }
    guard let digest = cookie?.secret?.digest, let session = sessions.session(of: digest) else { return stranger }
    let holder = try? holder(of: .session(digest), state) { verifier throws(TokenDefect) in
      guard case .object(let claims)? = try? Value(json: session.claims) else { throw .malformed }
      return try verifier.restored(claims, key: session.key)
    }
    return holder.map(Requester.known) ?? stranger
  }

  /// Returns true if a field's value is 'Bearer' and the token of a node: of an identity that may follow this server.
  func isNode(_ authorization: String?) -> Bool {
    guard let state, let authorization else { return false }
    return (try? requester(ofHeader: authorization, state))?.mayFollow ?? false
  }

  private func requester(ofHeader authorization: String, _ state: Locked<State>) throws(Problem) -> Requester {
    do throws(TokenDefect) {
      return .known(
        try holder(of: .header(authorization), state) { [now] verifier throws(TokenDefect) in
          guard let token = BearerToken(authorization: authorization) else { throw .absent }
          return try verifier.verify(token.text, now: now())
        })
    } catch .absent {
      throw Self.refusal("the Authorization header is not 'Bearer' with a token")
    } catch {
      throw Self.refusal("the token \(error.reason)")
    }
  }

  /// The holder of a credential, whose identity `verify` finds if the credential was not seen before. Throws what is
  /// wrong with it now.
  private func holder(
    of credential: Credential, _ state: Locked<State>,
    verifiedBy verify: (TokenVerifier) throws(TokenDefect) -> Identity
  ) throws(TokenDefect) -> KnownRequester {
    let (verifier, known) = state.withLock { ($0.verifier, $0.tokens[credential]) }
    // Verified outside of the lock: a signature takes long.
    let identity = if let known { known.identity } else { try verify(verifier) }
    try verifier.check(identity, now: now())
    try check(identity)
    if let known { return known }
    let viewer = admin.holds(of: identity.claims) ? nil : Viewer(claims: identity.claims, in: schema)
    let holder = KnownRequester(
      identity, viewer: viewer, isNode: nodes.holds(of: identity.claims), session: credential.session, in: schema)
    state.withLock { state in
      // Keys that were read meanwhile may not have verified it.
      if state.verifier.keys.has(identity.key) { state.tokens.remember(credential, holder) }
    }
    return holder
  }

  /// Asked at each use, also of a token that was verified before.
  private func check(_ identity: Identity) throws(TokenDefect) {
    if revocations.refuses(identity) { throw .revoked }
  }

  /// `unauthenticated` for a token that is not good (RFC 6750 §3).
  private static func refusal(_ detail: String) -> Problem {
    Problem(.unauthenticated, detail).with(.wwwAuthenticate, #"Bearer error="invalid_token""#)
  }

  /// The problem of a cookie that is not the one of a session.
  static var endedSession: Problem { refusal("the session of the cookie has ended, or this server did not begin it") }

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
  /// there, and the session has not ended.
  var validity: (StreamOwner) -> Bool {
    guard let verifier = state?.withLock({ $0.verifier }) else { return { _ in true } }
    let now = now()
    return { [revocations, sessions] owner in
      let identity = owner.identity
      return (try? verifier.check(identity, now: now)) != nil && verifier.keys.has(identity.key)
        && !revocations.refuses(identity) && owner.session.map { sessions.session(of: $0) != nil } ?? true
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
