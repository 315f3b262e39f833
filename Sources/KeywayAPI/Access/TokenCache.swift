import DequeModule

/// Tokens that were verified, by their bytes: a request with one of them costs no signature. Bounded in bytes; the
/// oldest are forgotten first.
struct TokenCache: Sendable {
  /// What an entry takes besides its token, which is in it twice, and its claims, which are as long once more.
  private static let entryBytes = 512

  private let limit: Int
  private var entries: [String: KnownRequester] = [:]
  private var order: Deque<String> = []
  private var bytes = 0

  /// A cache of so many bytes.
  init(limit: Int) { self.limit = limit }

  subscript(token: String) -> KnownRequester? { entries[token] }

  /// Remembers a token that was verified.
  mutating func remember(_ token: String, _ entry: KnownRequester) {
    let weight = Self.weight(of: token)
    guard weight <= limit, entries.updateValue(entry, forKey: token) == nil else { return }
    order.append(token)
    bytes += weight
    while bytes > limit, let oldest = order.popFirst() {
      entries[oldest] = nil
      bytes -= Self.weight(of: oldest)
    }
  }

  /// Forgets all: the keys are others.
  mutating func removeAll() { self = TokenCache(limit: limit) }

  private static func weight(of token: String) -> Int { entryBytes + 3 * token.utf8.count }
}
