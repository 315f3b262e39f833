import DequeModule
package import HTTPServer
import HTTPTypes
import Support

/// What is known of requests that came with an `Idempotency-Key`: a state machine without lock, clock or socket.
///
/// A key is unknown, under way or answered. `begin` makes an unknown key one that is under way and gives `first`; the
/// caller ends that with `keep`, which makes it answered, or with `abandon`, which makes it unknown again. An answered
/// key becomes unknown by age alone: were it forgotten earlier, because others want the room, its retry would be
/// applied a second time. So where the memory is full, or a client has its share of it (`ShareLimit`), `begin` refuses
/// the new request, and the refusal goes to the one who asks.
package struct IdempotencyMemory: Sendable {
  /// The limits of the memory.
  package struct Limits: Sendable {
    /// The most keys. `idempotency.keys`.
    package var keys = 100_000
    /// The most bytes of keys and responses. `idempotency.bytes`.
    package var bytes = 67_108_864
    /// How much of either one client may have, in percent. `idempotency.clientPercent`.
    package var clientPercent = 50
    /// Seconds for which a response is remembered. `idempotency.seconds`.
    package var seconds: UInt64 = 3600

    /// The defaults.
    package init() {}

    /// The most keys of one client.
    package var clientKeys: Int { max(1, Int(Double(keys) * Double(clientPercent) / 100)) }
    /// The most bytes of one client.
    package var clientBytes: Int { Int(Double(bytes) * Double(clientPercent) / 100) }
  }

  /// What to do with a request.
  package enum Finding: Sendable {
    /// Carry it out, then `keep` its response or `abandon` the key.
    case first
    /// Give the same response again.
    case answered(Response)
    /// A request with the key has no response yet.
    case underWay
    /// The key belongs to another request.
    case reused
    /// There is no room for one more.
    case full
    /// The client has its share.
    case shareFull
    /// The request alone is over a client's share of the bytes.
    case tooLarge
  }

  private enum State {
    case underWay
    case answered(Response, expiry: UInt64)
  }

  private struct Entry {
    let fingerprint: RequestFingerprint
    /// For whom its response is made; nil for those who are asked no rule.
    let viewer: ViewerMark?
    /// Whose share it is part of; nil for what was restored.
    let client: ClientAddress?
    /// What it counts; while it is under way, with the room that is held for its response.
    var byteCount: Int
    var state: State
  }

  private struct Share {
    var keys = 0
    var bytes = 0
  }

  /// What a key costs besides its characters and the response: its digest, its places in the tables and the headers of
  /// its arrays, roughly.
  package static let overheadBytes = 512
  /// The room that is held for the status and the fields of a response that is not there yet.
  package static let headBytes = 512

  /// The bounds.
  package let limits: Limits
  private let keyLimit: ShareLimit
  private let byteLimit: ShareLimit
  /// Bytes of all keys with their responses, and of the room that is held for responses to come.
  package private(set) var byteCount = 0
  /// Clients that have less than at the last look, because keys of theirs became unknown.
  private var relieved: Set<ClientAddress> = []

  private var entries: [IdempotencyKey: Entry] = [:]
  /// The keys that are answered, oldest first; so they also expire in this order.
  private var answered: Deque<IdempotencyKey> = []
  private var shares: [ClientAddress: Share] = [:]
  /// What other nodes answered to requests whose key is under way here, too; at most one for each of those.
  private var precedents: [IdempotencyKey: (response: Response, request: IdempotentRequest)] = [:]
  /// The bytes of what was restored.
  private(set) var restoredByteCount = 0

  /// A memory of nothing.
  package init(limits: Limits) {
    self.limits = limits
    keyLimit = ShareLimit(total: limits.keys, perClient: limits.clientKeys)
    byteLimit = ShareLimit(total: limits.bytes, perClient: limits.clientBytes)
  }

  /// How many keys are remembered, those under way included.
  package var keyCount: Int { entries.count }

  /// The bytes that count for a client.
  package func byteCount(of client: ClientAddress) -> Int { shares[client]?.bytes ?? 0 }

  /// A request of a client came, with a body of so many bytes: room for a response as long is held meanwhile. `now` is
  /// in seconds, and never less than at the call before.
  mutating func begin(
    _ request: IdempotentRequest, from client: ClientAddress, bodyBytes: Int, at now: UInt64
  ) -> Finding {
    forgetExpired(at: now)
    let key = request.key
    if let entry = entries[key] {
      guard entry.fingerprint == request.fingerprint else { return .reused }
      guard case .answered(let response, _) = entry.state else { return .underWay }
      return .answered(Self.response(response, madeFor: entry.viewer, to: request))
    }
    let cost = Self.cost(of: key) + Self.headBytes + bodyBytes
    let share = shares[client] ?? Share()
    if cost > limits.clientBytes { return .tooLarge }
    let refusals = [
      keyLimit.refusal(of: 1, held: share.keys, total: entries.count),
      byteLimit.refusal(of: cost, held: share.bytes, total: byteCount),
    ]
    if refusals.contains(.perClient) { return .shareFull }
    if refusals.contains(.total) { return .full }
    entries[key] = Entry(
      fingerprint: request.fingerprint, viewer: request.viewer, client: client, byteCount: 0, state: .underWay)
    shares[client, default: Share()].keys += 1
    setByteCount(of: key, to: cost)
    return .first
  }

  /// The request of a key that is under way was carried out: remembers its response. Where a body is longer than the
  /// room that is left for it, the response is remembered without it.
  package mutating func keep(_ response: Response, for key: IdempotencyKey, at now: UInt64) {
    guard let entry = underWay(key) else { return }
    precedents[key] = nil
    forgetExpired(at: now)
    let cost = Self.cost(of: key) + Self.byteCount(of: response)
    let growth = cost - entry.byteCount
    let held = entry.client.map { byteCount(of: $0) } ?? 0
    let isRefused = byteLimit.refusal(of: growth, held: held, total: byteCount) != nil
    let kept = isRefused ? Self.withoutBody(response) : Self.trimmed(response)
    entries[key]?.state = .answered(kept, expiry: now + limits.seconds)
    answered.append(key)
    setByteCount(of: key, to: Self.cost(of: key) + Self.byteCount(of: kept))
  }

  /// Forgets the body of a response that was kept, and remembers the rest.
  mutating func dropBody(of key: IdempotencyKey) {
    guard case .answered(let response, let expiry)? = entries[key]?.state else { return }
    let kept = Self.withoutBody(response)
    entries[key]?.state = .answered(kept, expiry: expiry)
    setByteCount(of: key, to: Self.cost(of: key) + Self.byteCount(of: kept))
  }

  /// Remembers the response that was given `age` seconds ago, before a restart or by another node, for the oldest
  /// response first. Whose request it was is not known, so it counts for all and for no client. One that
  /// is too old, or there already, is passed over; where the key is under way, it is the precedent of its request.
  /// Where the limits are lower than before, the oldest make room.
  mutating func restore(
    _ response: Response, for request: IdempotentRequest, age: UInt64, at now: UInt64
  ) {
    guard age < limits.seconds else { return }
    let key = request.key
    if let entry = entries[key] {
      if case .underWay = entry.state { precedents[key] = (response, request) }
      return
    }
    let cost = Self.cost(of: key) + Self.byteCount(of: response)
    guard cost <= limits.bytes else { return }
    while entries.count >= limits.keys || byteCount + cost > limits.bytes {
      guard !answered.isEmpty else { return }
      forgetOldest()
    }
    // The clock may have gone back before the restart: no response expires before those that are older.
    var expiry = now + limits.seconds - age
    if let last = answered.last, case .answered(_, let latest)? = entries[last]?.state { expiry = max(expiry, latest) }
    entries[key] = Entry(
      fingerprint: request.fingerprint, viewer: request.viewer, client: nil, byteCount: 0,
      state: .answered(Self.trimmed(response), expiry: expiry))
    answered.append(key)
    setByteCount(of: key, to: cost)
  }

  /// Every response that is remembered, with its request and the seconds since it was given, oldest first.
  func remembered(at now: UInt64) -> [(request: IdempotentRequest, response: Response, age: UInt64)] {
    answered.compactMap { key in
      guard let entry = entries[key], case .answered(let response, let expiry) = entry.state, expiry > now else {
        return nil
      }
      let age = limits.seconds - min(limits.seconds, expiry - now)
      let request = IdempotentRequest(key: key, fingerprint: entry.fingerprint, viewer: entry.viewer)
      return (request, response, age)
    }
  }

  /// What another node has answered to the request of a key that is under way; nil where it has not.
  func precedent(of request: IdempotentRequest) -> Response? {
    guard let found = precedents[request.key], found.request.fingerprint == request.fingerprint else { return nil }
    return Self.response(found.response, madeFor: found.request.viewer, to: request)
  }

  /// The request of a key that is under way changed nothing here: when it is sent again, it is the first again, unless
  /// another node has carried it out meanwhile. Then it has the response that this one gave.
  package mutating func abandon(_ key: IdempotencyKey, at now: UInt64) {
    guard underWay(key) != nil else { return }
    let precedent = precedents[key]
    remove(key)
    if let precedent { restore(precedent.response, for: precedent.request, age: 0, at: now) }
  }

  /// Forgets what is too old.
  package mutating func forgetExpired(at now: UInt64) {
    while let oldest = answered.first, case .answered(_, let expiry)? = entries[oldest]?.state, expiry <= now {
      forgetOldest()
    }
  }

  /// The clients that have less than at the call before.
  mutating func takeRelieved() -> Set<ClientAddress> {
    defer { relieved = [] }
    return relieved
  }

  /// The entry of a key, which must be under way.
  private func underWay(_ key: IdempotencyKey) -> Entry? {
    guard let entry = entries[key], case .underWay = entry.state else {
      assertionFailure("'\(key.text)' is not under way")
      return nil
    }
    return entry
  }

  /// Only to be called while keys are answered.
  private mutating func forgetOldest() {
    remove(answered.removeFirst())
  }

  private mutating func remove(_ key: IdempotencyKey) {
    precedents[key] = nil
    setByteCount(of: key, to: 0)
    guard let entry = entries.removeValue(forKey: key) else { return }
    relieved.insert(entry.client ?? .unknown)
    guard let client = entry.client else { return }
    shares[client]?.keys -= 1
    if shares[client]?.keys == 0 { shares[client] = nil }
  }

  private mutating func setByteCount(of key: IdempotencyKey, to count: Int) {
    guard let entry = entries[key] else { return }
    let change = count - entry.byteCount
    entries[key]?.byteCount = count
    byteCount += change
    if let client = entry.client { shares[client]?.bytes += change } else { restoredByteCount += change }
  }

  private static func cost(of key: IdempotencyKey) -> Int { overheadBytes + key.text.utf8.count }

  private static func byteCount(of response: Response) -> Int {
    response.fields.reduce(response.body.count) { $0 + $1.name.rawName.utf8.count + $1.value.utf8.count }
  }

  /// The response without the room that its body has to grow.
  private static func trimmed(_ response: Response) -> Response {
    var response = response
    response.body = response.body.withUnsafeBufferPointer { Array($0) }
    return response
  }

  /// The response that is given to a request, which was made for a viewer: whole, to one who may read the same.
  private static func response(
    _ response: Response, madeFor viewer: ViewerMark?, to request: IdempotentRequest
  ) -> Response {
    request.viewer == nil || request.viewer == viewer ? response : response.ofWhatMayNotBeRead()
  }

  private static func withoutBody(_ response: Response) -> Response {
    var response = response
    response.body = []
    response.fields[.contentType] = nil
    return response
  }

  /// What must always hold; stops the program where it does not. For tests.
  package func checkInvariants() {
    let underWay = entries.values.filter { if case .underWay = $0.state { true } else { false } }
    precondition(entries.count == underWay.count + answered.count, "every key is under way or in the queue")
    precondition(Set(answered).count == answered.count, "no key is in the queue twice")
    precondition(entries.values.reduce(0) { $0 + $1.byteCount } == byteCount, "bytes are counted")
    precondition(entries.count <= limits.keys && byteCount <= limits.bytes, "the bounds hold")
    for (client, share) in shares {
      let own = entries.values.filter { $0.client == client }
      precondition(own.count == share.keys, "the keys of a client are counted")
      precondition(own.reduce(0) { $0 + $1.byteCount } == share.bytes, "the bytes of a client are counted")
      precondition(share.keys <= limits.clientKeys && share.bytes <= limits.clientBytes, "the shares hold")
    }
    precondition(
      shares.values.reduce(0) { $0 + $1.bytes } + restoredByteCount == byteCount, "every byte is counted once")
    let expiries = answered.compactMap { key -> UInt64? in
      guard case .answered(_, let expiry)? = entries[key]?.state else { return nil }
      return expiry
    }
    precondition(expiries.count == answered.count && expiries == expiries.sorted(), "the queue is in order of expiry")
  }
}
