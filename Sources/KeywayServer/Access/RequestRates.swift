package import HTTPServer
import Support
import Synchronization

/// How often each client asks: a token bucket for each, which holds one second of requests and fills steadily
/// (`access.requestsPerSecond`).
///
/// A bucket is one number, the time at which it will be full again (the generic cell rate algorithm, ITU-T I.371). One
/// that is full says no more than none does, so it is forgotten. Where too many are not, those that will be full first
/// are forgotten: their clients gain the least by it.
package struct RequestRates: Sendable {
  /// The limits of the rates.
  package struct Limits: Sendable {
    /// The most requests of one client in a second; 0 for any.
    package var requestsPerSecond = 0
    /// The most clients whose rate is known.
    package var clients = 100_000

    /// The defaults.
    package init() {}
  }

  /// One bucket in so many is forgotten at a time, so that looking for them costs each request little.
  private static let forgottenPart = 8

  private var limits: Limits
  /// When each bucket will be full, in nanoseconds of a clock that only grows.
  private var fullTimes: [ClientAddress: UInt64] = [:]

  /// No client has asked yet.
  package init(_ limits: Limits) { self.limits = limits }

  /// Other limits hold from now on. What a client has asked for counts as it did: its bucket is full again when it
  /// would have been.
  package mutating func set(_ limits: Limits) { self.limits = limits }

  /// How many buckets there are.
  package var count: Int { fullTimes.count }

  /// A request of a client comes at a time, in nanoseconds that only grow. False where the client has asked too often:
  /// then it takes nothing out of its bucket.
  package mutating func take(_ client: ClientAddress, at now: UInt64) -> Bool {
    guard limits.requestsPerSecond > 0 else { return true }
    let interval = 1_000_000_000 / UInt64(limits.requestsPerSecond)
    let full = max(fullTimes[client] ?? 0, now)
    guard full + interval <= now + max(1_000_000_000, interval) else { return false }
    if fullTimes[client] == nil, fullTimes.count >= limits.clients { makeRoom(at: now) }
    fullTimes[client] = full + interval
    return true
  }

  /// Forgets the buckets that are full.
  package mutating func sweep(at now: UInt64) {
    guard !fullTimes.isEmpty else { return }
    fullTimes = fullTimes.filter { $0.value > now }
  }

  private mutating func makeRoom(at now: UInt64) {
    sweep(at: now)
    guard fullTimes.count >= limits.clients else { return }
    let first = fullTimes.sorted { $0.value < $1.value }.prefix(max(1, limits.clients / Self.forgottenPart))
    for (client, _) in first { fullTimes[client] = nil }
  }
}

/// The rates of all clients, behind a lock, with a clock.
final class RequestRateLimiter: Sendable {
  private let rates: Locked<RequestRates>
  private let limit: Atomic<Int>
  private let now: @Sendable () -> UInt64

  /// `now` gives nanoseconds that only grow.
  init(_ limits: RequestRates.Limits, now: @escaping @Sendable () -> UInt64) {
    rates = Locked(RequestRates(limits))
    limit = Atomic(limits.requestsPerSecond)
    self.now = now
  }

  /// Other limits hold from now on.
  func set(_ limits: RequestRates.Limits) {
    rates.withLock { $0.set(limits) }
    limit.store(limits.requestsPerSecond, ordering: .relaxed)
  }

  /// A request of a client comes. Throws `too-many-requests`.
  func take(_ client: ClientAddress) throws(Problem) {
    let limit = limit.load(ordering: .relaxed)
    guard limit > 0 else { return }
    // The clock is read under the lock, so that it never seems to go back.
    guard rates.withLock({ [now] rates in rates.take(client, at: now()) }) else {
      throw Problem(.tooManyRequests, "there are more than \(limit) requests a second (access.requestsPerSecond)")
    }
  }

  /// Forgets what is of no use any more.
  func sweep() { rates.withLock { [now] rates in rates.sweep(at: now()) } }
}
