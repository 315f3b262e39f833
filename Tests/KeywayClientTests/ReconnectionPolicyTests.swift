import TestKit
import Testing

@testable import KeywayClient

@Suite("Coming back to a stream")
struct ReconnectionPolicyTests {
  @Test("waits between half and all of a time that doubles, up to the cap")
  func backoff() {
    var generator = SplitMix64(seed: 7)
    var policy = ReconnectionPolicy(baseMilliseconds: 100, maximumMilliseconds: 1000)
    for full in [100, 200, 400, 800, 1000, 1000] {
      let delay = policy.nextDelayMilliseconds(using: &generator)
      #expect((full / 2...full).contains(delay))
    }
  }

  @Test("starts again after a success, from the time that the server asked for")
  func success() {
    var generator = SplitMix64(seed: 7)
    var policy = ReconnectionPolicy(baseMilliseconds: 100, maximumMilliseconds: 100_000)
    for _ in 0..<5 { _ = policy.nextDelayMilliseconds(using: &generator) }
    policy.noteSuccess()
    policy.noteRetry(milliseconds: 3000)
    #expect((1500...3000).contains(policy.nextDelayMilliseconds(using: &generator)))
  }

  @Test("waits as long as Retry-After says, but never beyond the cap")
  func retryAfter() {
    var generator = SplitMix64(seed: 7)
    var policy = ReconnectionPolicy(baseMilliseconds: 100, maximumMilliseconds: 10_000)
    #expect(policy.nextDelayMilliseconds(retryAfterSeconds: 5, using: &generator) == 5000)
    #expect(policy.nextDelayMilliseconds(retryAfterSeconds: .max, using: &generator) == 10_000)
  }

  @Test(
    "stops on 204 and on client errors, and comes back after 429 and server errors",
    arguments: [
      (204, EventStreamOutcome.ended), (400, .refused), (404, .refused), (410, .refused),
      (429, .reconnect(retryAfterSeconds: 2)), (500, .reconnect(retryAfterSeconds: 2)),
      (503, .reconnect(retryAfterSeconds: 2)), (304, .refused),
    ])
  func outcome(status: Int, expected: EventStreamOutcome) {
    #expect(EventStreamOutcome(ClientResponse(status: status, headers: ["retry-after": "2"])) == expected)
  }
}
