import DequeModule
package import HTTPServer
import HTTPTypes
import Support

/// The requests that came with an `Idempotency-Key`, and their responses: a state machine without a lock, clock or
/// socket.
///
/// A key is unknown, under way or answered. `begin` puts an unknown key under way and returns `first`; the caller ends
/// that with `keep`, which makes it answered, or with `abandon`, which makes it unknown again. An answered key becomes
/// unknown only by age: if it were forgotten earlier to make room for others, its retry would be applied a second time.
/// So if the memory is full, or a client has used its share of it (`ShareLimit`), `begin` refuses the new request, and
/// the refusal goes to the client that sends it.
package struct IdempotencyMemory: Sendable {
  /// The limits of the memory.
  package struct Limits: Sendable {
    /// The maximum number of keys. `idempotency.keys`.
    package var keys = 100_000
    /// The maximum size of keys and responses in bytes. `idempotency.bytes`.
    package var bytes = 67_108_864
    /// The share of either limit that one client may use, in percent. `idempotency.clientPercent`.
    package var clientPercent = 50
    /// The time for which a response is remembered, in seconds. `idempotency.seconds`.
    package var seconds: UInt64 = 3600

    /// The defaults.
    package init() {}

    /// The maximum number of keys of one client.
    package var clientKeys: Int { max(1, Int(Double(keys) * Double(clientPercent) / 100)) }
    /// The maximum size of keys and responses of one client in bytes.
    package var clientBytes: Int { Int(Double(bytes) * Double(clientPercent) / 100) }
  }

  /// The decision about a request.
  package enum Finding: Sendable {
    /// Carry it out, then `keep` its response or `abandon` the key.
    case first
    /// Repeat the response.
    case answered(Response)
    /// A request with the key has no response yet.
    case underWay
    /// The key belongs to another request.
    case reused
    /// There is no room for another request.
    case full
    /// The client has used its share.
    case shareFull
    /// The request alone exceeds a client's share of the bytes.
    case tooLarge
  }

  private enum State {
    case underWay
    case answered(Response, expiry: UInt64)
  }

  private struct Entry {
    let fingerprint: RequestFingerprint
    /// The viewer that the response is made for; nil if no rules apply to the requester.
    let viewer: ViewerMark?
    /// The client whose share the entry is part of; nil for an entry that was restored.
    let client: ClientAddress?
    /// The size that counts, in bytes; while the request is under way, with the room that is reserved for its response.
    var byteCount: Int
    var state: State
  }

  private struct Share {
    var keys = 0
    var bytes = 0
  }

  /// The approximate size of a key in bytes besides its characters and the response: its digest, its places in the
  /// tables and the headers of its arrays.
  package static let overheadBytes = 512
  /// The size in bytes that is reserved for the status and the fields of a response that does not exist yet.
  package static let headBytes = 512

  /// The limits.
  package let limits: Limits
  private let keyLimit: ShareLimit
  private let byteLimit: ShareLimit
  /// The size of all keys with their responses, and of the room that is reserved for responses to come, in bytes.
  package private(set) var byteCount = 0
  /// The clients that have less than at the last `takeRelieved`, because keys of theirs became unknown.
  private var relieved: Set<ClientAddress> = []

  private var entries: [IdempotencyKey: Entry] = [:]
  /// The answered keys, oldest first, which is also the order in which they expire.
  private var answered: Deque<IdempotencyKey> = []
  private var shares: [ClientAddress: Share] = [:]
  /// The responses of other nodes to requests whose key is under way here, too; at most one for each key.
  private var precedents: [IdempotencyKey: (response: Response, request: IdempotentRequest)] = [:]
  /// The size of what was restored, in bytes.
  private(set) var restoredByteCount = 0

  /// Creates an empty memory.
  package init(limits: Limits) {
    self.limits = limits
    keyLimit = ShareLimit(total: limits.keys, perClient: limits.clientKeys)
    byteLimit = ShareLimit(total: limits.bytes, perClient: limits.clientBytes)
  }

  /// The number of keys that are remembered, including those under way.
  package var keyCount: Int { entries.count }

  /// Returns the bytes that count for a client.
  package func byteCount(of client: ClientAddress) -> Int { shares[client]?.bytes ?? 0 }

  /// Begins a request of a client with a body of `bodyBytes` bytes; room for a response of the same length is reserved
  /// meanwhile. `now` is in seconds, and never less than at the call before.
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

  /// Remembers the response to the request of a key that is under way, which was carried out. If the body is longer
  /// than the room that is left for it, the response is remembered without it.
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

  /// Forgets the body of a remembered response, and keeps the rest.
  mutating func dropBody(of key: IdempotencyKey) {
    guard case .answered(let response, let expiry)? = entries[key]?.state else { return }
    let kept = Self.withoutBody(response)
    entries[key]?.state = .answered(kept, expiry: expiry)
    setByteCount(of: key, to: Self.cost(of: key) + Self.byteCount(of: kept))
  }

  /// Remembers the response that was given `age` seconds ago, before a restart or by another node. Called for the
  /// oldest response first. Its client is not known, so it counts for the whole memory and for no client. A response
  /// that is too old, or already known, is ignored; if the key is under way, the response is the precedent of its
  /// request. If the limits are lower than before, the oldest responses make room.
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
    // The clock may have gone back before the restart: no response expires before older ones.
    var expiry = now + limits.seconds - age
    if let last = answered.last, case .answered(_, let latest)? = entries[last]?.state { expiry = max(expiry, latest) }
    entries[key] = Entry(
      fingerprint: request.fingerprint, viewer: request.viewer, client: nil, byteCount: 0,
      state: .answered(Self.trimmed(response), expiry: expiry))
    answered.append(key)
    setByteCount(of: key, to: cost)
  }

  /// Returns every remembered response, with its request and the seconds since it was given, oldest first.
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

  /// Returns the response of another node to the request of a key that is under way, or nil if there is none.
  func precedent(of request: IdempotentRequest) -> Response? {
    guard let found = precedents[request.key], found.request.fingerprint == request.fingerprint else { return nil }
    return Self.response(found.response, madeFor: found.request.viewer, to: request)
  }

  /// Ends the request of a key that is under way and changed nothing here: when it is sent again, it is the first
  /// again, unless another node has carried it out meanwhile. Then it has the response of that node.
  package mutating func abandon(_ key: IdempotencyKey, at now: UInt64) {
    guard underWay(key) != nil else { return }
    let precedent = precedents[key]
    remove(key)
    if let precedent { restore(precedent.response, for: precedent.request, age: 0, at: now) }
  }

  /// Forgets the responses that are too old.
  package mutating func forgetExpired(at now: UInt64) {
    while let oldest = answered.first, case .answered(_, let expiry)? = entries[oldest]?.state, expiry <= now {
      forgetOldest()
    }
  }

  /// Returns the clients that have less than at the call before.
  mutating func takeRelieved() -> Set<ClientAddress> {
    defer { relieved = [] }
    return relieved
  }

  /// Returns the entry of a key, which must be under way.
  private func underWay(_ key: IdempotencyKey) -> Entry? {
    guard let entry = entries[key], case .underWay = entry.state else {
      assertionFailure("'\(key.text)' is not under way")
      return nil
    }
    return entry
  }

  /// Forgets the oldest answered key. Must only be called while there is one.
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
    response.body.count + response.fields.byteCount
  }

  /// Returns the response without the spare capacity of its body.
  private static func trimmed(_ response: Response) -> Response {
    var response = response
    response.body = response.body.withUnsafeBufferPointer { Array($0) }
    return response
  }

  /// Returns the response to a request, which was made for a viewer: in full only to a requester who may read the same.
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

  /// Checks the invariants, and stops the program if one does not hold. For tests.
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
