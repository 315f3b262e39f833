import DequeModule

/// Whose tokens were verified, by the bytes of the header's value or cookie that they came in: a request with the same
/// costs no signature. Bounded in bytes; the oldest are forgotten first.
struct TokenCache: Sendable {
  /// What an entry takes besides its token, which is in it twice, and its claims, which are as long once more.
  private static let entryBytes = 512

  private let limit: Int
  private var entries: [String: KnownRequester] = [:]
  private var order: Deque<String> = []
  private var bytes = 0

  /// A cache of so many bytes.
  init(limit: Int) { self.limit = limit }

  subscript(credential: String) -> KnownRequester? { entries[credential] }

  /// Remembers what a token that was verified came in.
  mutating func remember(_ credential: String, _ entry: KnownRequester) {
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

  private static func weight(of credential: String) -> Int { entryBytes + 3 * credential.utf8.count }
}
