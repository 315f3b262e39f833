import DequeModule
package import HTTPServer
import HTTPTypes

/// What is known of requests that came with an `Idempotency-Key`: a state machine without lock, clock or socket.
///
/// A key is unknown, under way or answered. `begin` makes an unknown key one that is under way and gives `first`; the
/// caller ends that with `keep`, which makes it answered, or with `abandon`, which makes it unknown again. An answered
/// key becomes unknown by age, or when the memory is full and it is the oldest. One that is under way is never
/// forgotten, since a retry would be applied beside it: where those alone fill the memory, `begin` gives `full`.
package struct IdempotencyMemory: Sendable {
  /// The limits of the memory.
  package struct Limits: Sendable {
    /// The most keys. `idempotency.keys`.
    package var keys = 10_000
    /// The most bytes of keys, requests and responses. `idempotency.bytes`.
    package var bytes = 16_777_216
    /// Seconds for which a response is remembered. `idempotency.seconds`.
    package var seconds: UInt64 = 86_400

    /// The defaults.
    package init() {}
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
    /// There is no room for one more under way.
    case full
    /// The request alone is over the bound of bytes.
    case tooLarge
  }

  private enum State {
    case underWay
    case answered(Response, expiry: UInt64)
  }

  private struct Entry {
    let fingerprint: RequestFingerprint
    /// What it counts.
    var byteCount: Int
    var state: State
  }

  /// What a key costs besides its bytes: its places in the tables and the headers of its arrays, roughly.
  package static let overheadBytes = 512

  /// The bounds.
  package let limits: Limits
  /// Bytes of all keys with their requests and responses.
  package private(set) var byteCount = 0

  private var entries: [IdempotencyKey: Entry] = [:]
  /// The keys that are answered, oldest first; so they also expire in this order.
  private var answered: Deque<IdempotencyKey> = []
  private var underWayByteCount = 0

  /// A memory of nothing.
  package init(limits: Limits) {
    self.limits = limits
  }

  /// How many keys are remembered, those under way included.
  package var keyCount: Int { entries.count }

  /// A request came. `now` is in seconds, and never less than at the call before.
  package mutating func begin(
    _ key: IdempotencyKey, _ fingerprint: RequestFingerprint, at now: UInt64
  ) -> Finding {
    forgetExpired(at: now)
    if let entry = entries[key] {
      guard entry.fingerprint == fingerprint else { return .reused }
      guard case .answered(let response, _) = entry.state else { return .underWay }
      return .answered(response)
    }
    let cost = Self.overheadBytes + key.text.utf8.count + fingerprint.byteCount
    guard cost <= limits.bytes else { return .tooLarge }
    guard entries.count - answered.count < limits.keys, underWayByteCount + cost <= limits.bytes else { return .full }
    while entries.count >= limits.keys || byteCount + cost > limits.bytes { forgetOldest() }
    entries[key] = Entry(fingerprint: fingerprint, byteCount: cost, state: .underWay)
    byteCount += cost
    underWayByteCount += cost
    return .first
  }

  /// The request of a key that is under way was carried out: remembers its response, and forgets the oldest where that
  /// is too much. A response for which there is no room even so is itself forgotten.
  package mutating func keep(_ response: Response, for key: IdempotencyKey, at now: UInt64) {
    guard var entry = endUnderWay(key) else { return }
    forgetExpired(at: now)
    let cost = Self.byteCount(of: response)
    entry.byteCount += cost
    entry.state = .answered(Self.trimmed(response), expiry: now + limits.seconds)
    entries[key] = entry
    answered.append(key)
    byteCount += cost
    while byteCount > limits.bytes { forgetOldest() }
  }

  /// Remembers the response that was given `age` seconds ago, before a restart; to be called before any request comes,
  /// for the oldest response first. One that is too old, or there already, is passed over.
  package mutating func restore(
    _ response: Response, for key: IdempotencyKey, _ fingerprint: RequestFingerprint, age: UInt64, at now: UInt64
  ) {
    guard age < limits.seconds, entries[key] == nil else { return }
    let cost = Self.overheadBytes + key.text.utf8.count + fingerprint.byteCount + Self.byteCount(of: response)
    guard cost <= limits.bytes else { return }
    while entries.count >= limits.keys || byteCount + cost > limits.bytes { forgetOldest() }
    // The clock may have gone back before the restart: no response expires before those that are older.
    var expiry = now + limits.seconds - age
    if let last = answered.last, case .answered(_, let latest)? = entries[last]?.state { expiry = max(expiry, latest) }
    entries[key] = Entry(
      fingerprint: fingerprint, byteCount: cost, state: .answered(Self.trimmed(response), expiry: expiry))
    answered.append(key)
    byteCount += cost
  }

  /// The request of a key that is under way changed nothing: when it is sent again, it is the first again.
  package mutating func abandon(_ key: IdempotencyKey) {
    guard let entry = endUnderWay(key) else { return }
    entries[key] = nil
    byteCount -= entry.byteCount
  }

  /// The entry of a key that is under way, which it is no longer.
  private mutating func endUnderWay(_ key: IdempotencyKey) -> Entry? {
    guard let entry = entries[key], case .underWay = entry.state else {
      assertionFailure("'\(key.text)' is not under way")
      return nil
    }
    underWayByteCount -= entry.byteCount
    return entry
  }

  private mutating func forgetExpired(at now: UInt64) {
    while let oldest = answered.first, case .answered(_, let expiry)? = entries[oldest]?.state, expiry <= now {
      forgetOldest()
    }
  }

  /// Only to be called while keys are answered; those under way are never more than the bounds allow.
  private mutating func forgetOldest() {
    let key = answered.removeFirst()
    byteCount -= entries.removeValue(forKey: key)?.byteCount ?? 0
  }

  private static func byteCount(of response: Response) -> Int {
    response.fields.reduce(response.body.count) { $0 + $1.name.rawName.utf8.count + $1.value.utf8.count }
  }

  /// The response without the room that its body has to grow.
  private static func trimmed(_ response: Response) -> Response {
    var response = response
    response.body = response.body.withUnsafeBufferPointer { Array($0) }
    return response
  }

  /// What must always hold; stops the program where it does not. For tests.
  package func checkInvariants() {
    let underWay = entries.values.filter { if case .underWay = $0.state { true } else { false } }
    precondition(entries.count == underWay.count + answered.count, "every key is under way or in the queue")
    precondition(Set(answered).count == answered.count, "no key is in the queue twice")
    precondition(underWay.reduce(0) { $0 + $1.byteCount } == underWayByteCount, "bytes under way are counted")
    precondition(entries.values.reduce(0) { $0 + $1.byteCount } == byteCount, "bytes are counted")
    precondition(entries.count <= limits.keys && byteCount <= limits.bytes, "the bounds hold")
    let expiries = answered.compactMap { key -> UInt64? in
      guard case .answered(_, let expiry)? = entries[key]?.state else { return nil }
      return expiry
    }
    precondition(expiries.count == answered.count && expiries == expiries.sorted(), "the queue is in order of expiry")
  }
}
