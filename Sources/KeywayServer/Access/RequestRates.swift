package import HTTPServer
import Support
import Synchronization

/// The request rate of each client: a token bucket for each, which holds one second of requests and fills steadily
/// (`access.requestsPerSecond`).
///
/// A bucket is one number, the time at which it will be full again (the generic cell rate algorithm, ITU-T I.371). A
/// full bucket means the same as none, so it is forgotten. If too many buckets are not full, those that will be full
/// first are forgotten: their clients gain the least by it.
package struct RequestRates: Sendable {
  /// The limits of the rates.
  package struct Limits: Sendable {
    /// The maximum number of requests of one client in a second; 0 for no limit.
    package var requestsPerSecond = 0
    /// The maximum number of clients whose rate is tracked.
    package var clients = 100_000

    /// The defaults.
    package init() {}
  }

  /// The part of the buckets that is forgotten at a time, one in this many, so that looking for them costs each request
  /// little.
  private static let forgottenPart = 8

  private var limits: Limits
  /// The time at which each bucket will be full, in nanoseconds of a monotonic clock.
  private var fullTimes: [ClientAddress: UInt64] = [:]

  /// Creates an empty table: no client has sent a request.
  package init(_ limits: Limits) { self.limits = limits }

  /// Sets the limits that apply from now on. Past requests of a client count as they did: its bucket is full again when
  /// it would have been.
  package mutating func set(_ limits: Limits) { self.limits = limits }

  /// The number of buckets.
  package var count: Int { fullTimes.count }

  /// Counts a request of a client at a time, in nanoseconds of a monotonic clock. Returns false if the client has sent
  /// too many; then the request takes nothing out of its bucket.
  package mutating func take(_ client: ClientAddress, at now: UInt64) -> Bool {
    guard limits.requestsPerSecond > 0 else { return true }
    let interval = 1_000_000_000 / UInt64(limits.requestsPerSecond)
    let full = max(fullTimes[client] ?? 0, now)
    guard full + interval <= now + max(1_000_000_000, interval) else { return false }
    if fullTimes[client] == nil, fullTimes.count >= limits.clients { makeRoom(at: now) }
    fullTimes[client] = full + interval
    return true
  }

  /// Forgets the buckets that are full at a time.
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

  /// Creates a limiter. `now` returns nanoseconds of a monotonic clock.
  init(_ limits: RequestRates.Limits, now: @escaping @Sendable () -> UInt64) {
    rates = Locked(RequestRates(limits))
    limit = Atomic(limits.requestsPerSecond)
    self.now = now
  }

  /// Sets the limits that apply from now on.
  func set(_ limits: RequestRates.Limits) {
    rates.withLock { $0.set(limits) }
    limit.store(limits.requestsPerSecond, ordering: .relaxed)
  }

  /// Counts a request of a client. Throws `too-many-requests`.
  func take(_ client: ClientAddress) throws(Problem) {
    let limit = limit.load(ordering: .relaxed)
    guard limit > 0 else { return }
    // The clock is read under the lock, so that it never seems to go back.
    guard rates.withLock({ [now] rates in rates.take(client, at: now()) }) else {
      throw Problem(
        .tooManyRequests, "this client sends more than \(limit) requests per second (access.requestsPerSecond)")
    }
  }

  /// Forgets the buckets that are full.
  func sweep() { rates.withLock { [now] rates in rates.sweep(at: now()) } }
}
