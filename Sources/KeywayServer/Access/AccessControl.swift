import CEL
import DequeModule
import Foundation
import HTTPServer
import HTTPTypes
import KeyValueModel
import Logging
import Support

/// Identifies requesters: verifies tokens, and the cookies that stand for them.
package final class AccessControl: Sendable {
  private struct State {
    var file: KeyFile?
    var verifier: TokenVerifier
    var tokens: TokenCache
  }

  package let options: AccessOptions
  let sessions: Sessions
  /// The accounts of the store, which count only if `access.accounts` is true.
  let accounts: Accounts
  package let revocations: Revocations
  private let admin: AdminRule
  private let nodes: AdminRule
  private let schema: Schema
  /// The requester of a request without a token.
  let stranger: Requester
  /// Nil if there are neither keys nor accounts.
  private let state: Locked<State>?
  private let logger: Logger
  /// The time in seconds since 1970.
  private let now: @Sendable () -> Double

  /// Reads the keys, if `options` name a file of them. The rules are those of `schema`; `now` returns seconds since
  /// 1970. Throws an `AccessError`.
  init(
    _ options: AccessOptions, schema: Schema, revocations: Revocations, logger: Logger,
    now: @escaping @Sendable () -> Double
  ) throws(AccessError) {
    self.options = options
    self.schema = schema
    self.revocations = revocations
    let hasKeys = options.keys != AccessOptions.none
    let isOpen = !hasKeys && !options.accounts
    let viewer = Viewer(claims: nil, in: schema, isPermittedWithoutRule: isOpen)
    let access = WriteAccess(claims: nil, viewer: viewer, in: schema)
    stranger = isOpen ? .anybody(schema.hasRules ? access : nil) : .nobody(access)
    self.logger = logger
    self.now = now
    admin = try AdminRule(options.admin, of: "access.admin")
    nodes = try AdminRule(options.nodes, of: "access.nodes")
    sessions = Sessions(options.sessions, leeway: options.leewaySeconds)
    accounts = Accounts(limit: options.accountBytes)
    guard !isOpen else {
      state = nil
      return
    }
    if options.accounts, hasKeys, options.accountPrefix == AccessOptions.none {
      throw AccessError(
        "access.accountPrefix is not set: without it, an account and a token could have the same 'sub'")
    }
    var file = hasKeys ? KeyFile(path: options.keys) : nil
    let keys = try file?.read() ?? KeySet.empty
    if let warning = file?.warning(of: keys) { logger.warning("\(warning)") }
    // The cache of verified tokens grows with the maximum size of the sessions.
    state = Locked(
      State(
        file: file, verifier: Self.verifier(keys, options), tokens: TokenCache(limit: options.sessions.bytes / 16)))
  }

  private static func verifier(_ keys: KeySet, _ options: AccessOptions) -> TokenVerifier {
    TokenVerifier(
      keys: keys, issuer: options.issuer == AccessOptions.none ? nil : options.issuer,
      audience: options.audience == AccessOptions.none ? nil : options.audience,
      leeway: Double(options.leewaySeconds), longestLife: Double(options.tokenSeconds))
  }

  /// True if there are keys or accounts, so that the identity of a requester matters.
  var isOn: Bool { state != nil }

  /// The time in seconds since 1970.
  var present: Double { now() }

  /// Returns the requester of a request: the header wins over the cookie. A cookie whose session has ended, or never
  /// existed, identifies no one. Throws `unauthenticated` for an invalid token.
  func requester(of request: borrowing Request, _ cookie: SessionCookie?) throws(Problem) -> Requester {
    guard let state else { return stranger }
    if let authorization = request.header(.authorization) {
      return try requester(ofHeader: authorization, state)
    }
    guard let secret = cookie?.secret, let holder = try? holder(of: secret, state) else { return stranger }
    return .known(holder)
  }

  /// Returns the holder of a session, or nil if there is none with this secret. Throws the reason why its identity is
  /// not valid now.
  private func holder(of secret: SessionSecret, _ state: Locked<State>) throws(TokenDefect) -> KnownRequester? {
    guard let session = sessions.session(of: secret.digest) else { return nil }
    return try holder(of: .session(secret.digest), state) { verifier throws(TokenDefect) in
      if let identity = session.accountIdentity { return identity }
      guard case .object(let claims)? = try? Value(json: session.claims) else { throw .malformed }
      return try verifier.restored(claims, key: session.key)
    }
  }

  /// Returns the identity of an account that signs in now.
  func identity(of account: Account) -> Identity {
    let prefix = options.accountPrefix == AccessOptions.none ? "" : options.accountPrefix
    let subject = prefix + account.name.text
    var claims: JSONObject = ["sub": .string(subject)]
    for (name, value) in account.claims.members { claims[name] = value }
    return Identity(
      claims: claims, subject: subject, expires: (now() + Double(options.sessionSeconds)).rounded(.down),
      issued: now(), key: account.mark, isOfAccount: true)
  }

  /// Throws the reason why an identity, found before, is not valid now.
  private func check(_ identity: Identity, _ verifier: TokenVerifier, now: Double) throws(TokenDefect) {
    if identity.isOfAccount {
      guard options.accounts, accounts.has(identity.key) else { throw .unknownSession }
      guard now < identity.expires else { throw .expired }
    } else {
      try verifier.check(identity, now: now)
    }
    // Checked at each use, also of a credential that was verified before.
    if revocations.refuses(identity) { throw .revoked }
  }

  /// Returns true if a field's value is 'Bearer' and the token of a node: of an identity that may follow this server.
  func isNode(_ authorization: String?) -> Bool {
    guard let state, let authorization else { return false }
    return (try? requester(ofHeader: authorization, state))?.mayFollow ?? false
  }

  private func requester(ofHeader authorization: String, _ state: Locked<State>) throws(Problem) -> Requester {
    do throws(TokenDefect) {
      // The token of a sign-in is the secret of its session, which has no dot; a JWT has one near its beginning. A
      // session that a token began has no token: its secret is valid only in the cookie.
      if !authorization.utf8.contains(UInt8(ascii: ".")),
        let secret = BearerToken(authorization: authorization).flatMap({ SessionSecret(text: $0.text) })
      {
        guard let holder = try holder(of: secret, state), holder.identity.isOfAccount else { throw .unknownSession }
        return .known(holder)
      }
      return .known(
        try holder(of: .header(authorization), state) { [now] verifier throws(TokenDefect) in
          guard let token = BearerToken(authorization: authorization) else { throw .absent }
          return try verifier.verify(token.text, now: now())
        })
    } catch .absent {
      throw Self.refusal("the Authorization header is not 'Bearer' followed by a token")
    } catch {
      throw Self.refusal("the token \(error.reason)")
    }
  }

  /// Returns the holder of a credential, whose identity `verify` finds if the credential is not cached. Throws the
  /// reason why the credential is not valid now.
  private func holder(
    of credential: Credential, _ state: Locked<State>,
    verifiedBy verify: (TokenVerifier) throws(TokenDefect) -> Identity
  ) throws(TokenDefect) -> KnownRequester {
    let (verifier, known) = state.withLock { ($0.verifier, $0.tokens[credential]) }
    // Verified outside of the lock, because checking a signature takes long.
    let identity = if let known { known.identity } else { try verify(verifier) }
    try check(identity, verifier, now: now())
    if let known { return known }
    let viewer = admin.holds(of: identity.claims) ? nil : Viewer(claims: identity.claims, in: schema)
    let holder = KnownRequester(
      identity, viewer: viewer, isNode: nodes.holds(of: identity.claims), session: credential.session, in: schema)
    state.withLock { state in
      // Keys that were read meanwhile may not include the one that verified it.
      if identity.isOfAccount || state.verifier.keys.has(identity.key) { state.tokens.remember(credential, holder) }
    }
    return holder
  }

  /// Returns the problem `unauthenticated` for an invalid token (RFC 6750 §3).
  private static func refusal(_ detail: String) -> Problem {
    Problem(.unauthenticated, detail).with(.wwwAuthenticate, #"Bearer error="invalid_token""#)
  }

  /// The problem of a cookie that belongs to no session.
  static var endedSession: Problem { refusal("the session of the cookie has ended, or this server did not begin it") }

  /// The problem `unauthenticated` for a request without a token that needs one.
  static var unauthenticated: Problem {
    Problem(.unauthenticated, "this is not available without a token").with(.wwwAuthenticate, "Bearer")
  }

  /// Turns the response to a request without a token into one that asks for a token, if the response to another
  /// requester could differ. So a refusal by a rule and a missing object look the same.
  static func hide(in response: inout Response) {
    guard let code = response.reason.flatMap(ProblemCode.init), code.dependsOnAccess else { return }
    let cursor = response.fields[.keywayCursor]
    response = unauthenticated.response
    response.fields[.keywayCursor] = cursor
  }

  // MARK: Keys

  /// Reads the keys again if their file has changed, or in any case if `always` is true. If that fails, the error is
  /// logged and the former keys stay.
  func reloadKeys(always: Bool = false) {
    guard let state else { return }
    let outcome = state.withLock { state -> Result<(count: Int, warning: String?), AccessError>? in
      guard var file = state.file, always || file.hasChanged else { return nil }
      defer { state.file = file }
      do throws(AccessError) {
        let keys = try file.read()
        state.verifier = Self.verifier(keys, options)
        state.tokens.removeAll()
        return .success((keys.count, file.warning(of: keys)))
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

  /// A function that returns true if the stream of an owner may continue: the token has not expired and is not revoked,
  /// its key or account is still what it was, and the session has not ended.
  var validity: (StreamOwner) -> Bool {
    guard let verifier = state?.withLock({ $0.verifier }) else { return { _ in true } }
    let now = now()
    return { [self] owner in
      let identity = owner.identity
      return (try? check(identity, verifier, now: now)) != nil
        && (identity.isOfAccount || verifier.keys.has(identity.key))
        && owner.session.map { sessions.session(of: $0) != nil } ?? true
    }
  }
}

/// The token of an `Authorization` header (RFC 6750 §2.1).
private struct BearerToken {
  let text: String

  /// Returns nil for another scheme, and if no token follows.
  init?(authorization: String) {
    // Compared by bytes, because a header comes with every request, and tokens are long.
    let space = UInt8(ascii: " ")
    let bytes = authorization.utf8
    guard let end = bytes.firstIndex(of: space), authorization[..<end].lowercased() == "bearer" else { return nil }
    guard let start = bytes[end...].firstIndex(where: { $0 != space }) else { return nil }
    let token = authorization[start...]
    // Searched in contiguous memory, if the text is in such.
    let hasSpace = token.utf8.withContiguousStorageIfAvailable { $0.contains(space) } ?? token.utf8.contains(space)
    guard !hasSpace else { return nil }
    text = String(token)
  }
}

/// The proof of an identity that a request carries.
private enum Credential: Hashable, Sendable {
  /// The value of an `Authorization` header.
  case header(String)
  /// The secret of a session.
  case session(SessionDigest)

  /// The session; nil for a header.
  var session: SessionDigest? { if case .session(let digest) = self { digest } else { nil } }
}

/// The holders of credentials that were verified: a request with the same credential needs no check of a signature.
/// Bounded in bytes; the oldest are forgotten first.
private struct TokenCache: Sendable {
  /// The size of an entry in bytes without its header, which is in it twice, and its claims, which are about as long
  /// again.
  private static let entryBytes = 512
  /// The approximate size of the claims of a session in bytes, in place of a header.
  private static let sessionBytes = 1_024

  private let limit: Int
  private var entries: [Credential: KnownRequester] = [:]
  private var order: Deque<Credential> = []
  private var bytes = 0

  /// Creates an empty cache of at most `limit` bytes.
  init(limit: Int) { self.limit = limit }

  subscript(credential: Credential) -> KnownRequester? { entries[credential] }

  /// Stores the holder of a credential that was verified.
  mutating func remember(_ credential: Credential, _ entry: KnownRequester) {
    let weight = Self.weight(of: credential)
    guard weight <= limit, entries.updateValue(entry, forKey: credential) == nil else { return }
    order.append(credential)
    bytes += weight
    while bytes > limit, let oldest = order.popFirst() {
      entries[oldest] = nil
      bytes -= Self.weight(of: oldest)
    }
  }

  /// Forgets all entries, because the keys have changed.
  mutating func removeAll() { self = TokenCache(limit: limit) }

  private static func weight(of credential: Credential) -> Int {
    switch credential {
    case .header(let text): entryBytes + 3 * text.utf8.count
    case .session: entryBytes + sessionBytes
    }
  }
}

/// An expression of a setting that says which identities may do more than the rules say.
private struct AdminRule: Sendable {
  private static let limits = ExpressionLimits()

  private struct Environment: ExpressionEnvironment {
    func type(ofVariable name: String) -> ExpressionType? { name == "identity" ? .dyn : nil }
    func type(ofField name: String, inObject object: String) -> ExpressionType? { nil }
  }

  private struct Activation: ExpressionActivation {
    let claims: JSONObject

    func value(
      ofVariable name: String, index: Int, budget: inout EvaluationBudget
    ) throws(EvaluationError) -> ExpressionValue {
      ExpressionValue(json: .object(claims))
    }
  }

  private let expression: CheckedExpression

  /// Reads the expression of a setting. Throws an `AccessError` if it is not a condition over `identity`.
  init(_ text: String, of setting: String) throws(AccessError) {
    do {
      expression = try CEL.Expression(parsing: text, limits: Self.limits).checked(in: Environment())
    } catch {
      throw AccessError("\(setting): \(error)")
    }
    guard expression.type == .bool || expression.type == .dyn else {
      throw AccessError("\(setting) is not a condition: its values are \(expression.type)")
    }
  }

  /// Returns true if the claims meet the condition. An error counts as false.
  func holds(of claims: JSONObject) -> Bool {
    var budget = EvaluationBudget(Self.limits)
    guard case .success(.bool(true)) = expression.evaluate(Activation(claims: claims), budget: &budget) else {
      return false
    }
    return true
  }
}

/// The file of the keys, and whether it has changed since it was read.
private struct KeyFile: Sendable {
  /// The maximum size of the file in bytes.
  private static let maximumBytes = 1 << 20

  /// The attributes that tell one version of a file from another. The time is that of the last change of its content or
  /// of its owner and mode: a file that could not be read is tried again once it can.
  private struct Version: Hashable, Sendable {
    var device: UInt64 = 0
    var inode: UInt64 = 0
    var bytes: Int64 = 0
    var seconds = 0
    var nanoseconds = 0
  }

  private let path: String
  private var version: Version?

  init(path: String) { self.path = path }

  /// True if the file is not the version that was read last. A file that no longer exists has not changed.
  var hasChanged: Bool { Self.version(of: path).map { $0 != version } ?? false }

  /// Reads the keys. Throws an `AccessError`; the same version of the file is not tried again.
  mutating func read() throws(AccessError) -> KeySet {
    version = Self.version(of: path)
    guard let handle = FileHandle(forReadingAtPath: path), let data = try? handle.read(upToCount: Self.maximumBytes + 1)
    else { throw AccessError("access.keys: '\(path)' cannot be read") }
    guard data.count <= Self.maximumBytes else {
      throw AccessError("access.keys: '\(path)' has more than \(Self.maximumBytes) bytes")
    }
    do {
      return try KeySet(json: Array(data))
    } catch {
      throw AccessError("access.keys: '\(path)' is refused: \(error)")
    }
  }

  /// Returns a warning for the operator if others than the owner can read the file, and its keys are secret.
  func warning(of keys: KeySet) -> String? {
    keys.holdsSecret ? SecretFile.warning(of: path, named: "access.keys") : nil
  }

  private static func version(of path: String) -> Version? {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    return Version(
      device: UInt64(status.st_dev), inode: UInt64(status.st_ino), bytes: Int64(status.st_size),
      seconds: status.st_ctim.tv_sec, nanoseconds: status.st_ctim.tv_nsec)
  }
}
