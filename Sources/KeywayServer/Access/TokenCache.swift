import DequeModule

/// The proof of an identity that a request carries.
enum Credential: Hashable, Sendable {
  /// The value of an `Authorization` header.
  case header(String)
  /// The secret of a session.
  case session(SessionDigest)

  /// The session; nil for a header.
  var session: SessionDigest? { if case .session(let digest) = self { digest } else { nil } }
}

/// The holders of credentials that were verified: a request with the same credential costs no signature. Bounded in
/// bytes; the oldest are forgotten first.
struct TokenCache: Sendable {
  /// The bytes of an entry besides its header, which is in it twice, and its claims, which are as long once more.
  private static let entryBytes = 512
  /// The bytes of the claims of a session, about, in the place of a header.
  private static let sessionBytes = 1_024

  private let limit: Int
  private var entries: [Credential: KnownRequester] = [:]
  private var order: Deque<Credential> = []
  private var bytes = 0

  /// A cache of so many bytes.
  init(limit: Int) { self.limit = limit }

  subscript(credential: Credential) -> KnownRequester? { entries[credential] }

  /// Remembers a credential that was verified.
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

  /// Forgets all: the keys are others.
  mutating func removeAll() { self = TokenCache(limit: limit) }

  private static func weight(of credential: Credential) -> Int {
    switch credential {
    case .header(let text): entryBytes + 3 * text.utf8.count
    case .session: entryBytes + sessionBytes
    }
  }
}
