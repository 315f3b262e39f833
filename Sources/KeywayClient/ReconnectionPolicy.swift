/// When to reconnect to a stream: exponential backoff with jitter and a cap, from the time that the server asked for.
///
/// A state machine without clock and randomness: the caller sleeps, and gives the random numbers.
package struct ReconnectionPolicy: Hashable, Sendable {
  /// The waiting time before the first attempt, until the server sends `retry:`.
  package var baseMilliseconds: Int
  /// No waiting time is longer.
  package var maximumMilliseconds: Int

  private var failures = 0

  /// A policy that starts with `baseMilliseconds`.
  package init(baseMilliseconds: Int = 1000, maximumMilliseconds: Int = 30_000) {
    self.baseMilliseconds = baseMilliseconds
    self.maximumMilliseconds = maximumMilliseconds
  }

  /// The server's `retry:`.
  package mutating func noteRetry(milliseconds: Int) { baseMilliseconds = milliseconds }

  /// An event has come: the next loss of the connection is the first again.
  package mutating func noteSuccess() { failures = 0 }

  /// How long to wait before the next attempt: between half and all of base · 2ⁿ after n attempts in vain, and at least
  /// what the server's `Retry-After` says, but never more than the cap.
  package mutating func nextDelayMilliseconds(
    retryAfterSeconds: Int? = nil, using generator: inout some RandomNumberGenerator
  ) -> Int {
    let factor = 1 << min(failures, 16)
    failures += 1
    let (product, isOverflow) = max(baseMilliseconds, 1).multipliedReportingOverflow(by: factor)
    let full = min(isOverflow ? .max : product, maximumMilliseconds)
    let delay = Int.random(in: (full / 2)...full, using: &generator)
    let asked = min(retryAfterSeconds ?? 0, maximumMilliseconds / 1000 + 1) * 1000
    return min(max(delay, asked), maximumMilliseconds)
  }
}
