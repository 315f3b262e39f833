import Foundation
import Glibc
import Histogram
import Locking

/// Writes at a fixed rate over a few connections, each on a thread of its own and with objects of its own, and measures
/// how long the answers take.
final class SteadyWriters: Sendable {
  private struct State {
    var running = 0
    var isStopped = false
    var failure: FanoutError?
    var histogram = FanoutLatency.histogram()
  }

  /// What came of it.
  struct Outcome: Hashable, Sendable {
    /// How many writes were answered.
    var writes = 0
    /// How long the answers took.
    var latency = FanoutLatency()
  }

  private let plan: ReconnectPlan
  private let ledger: MessageLedger
  private let state = Locked(State())

  init(_ plan: ReconnectPlan, _ ledger: MessageLedger) {
    self.plan = plan
    self.ledger = ledger
  }

  /// What came of it so far, and whether a thread still runs. Throws the first failure.
  func outcome() throws(FanoutError) -> (outcome: Outcome, isRunning: Bool) {
    let (histogram, running, failure) = state.withLock { ($0.histogram, $0.running, $0.failure) }
    if let failure { throw failure }
    let outcome = Outcome(writes: Int(histogram.totalCount), latency: FanoutLatency(histogram))
    return (outcome, running > 0)
  }

  /// Starts the threads; they end at the first failure, or after `stop`.
  func start() {
    state.withLock { $0.running = plan.writers }
    for number in 0..<plan.writers {
      Thread { [self] in
        var failure: FanoutError?
        do throws(FanoutError) { try write(number) } catch { failure = error }
        state.withLock {
          $0.running -= 1
          $0.failure = $0.failure ?? failure
        }
      }.start()
    }
  }

  /// Forgets how long the answers have taken so far.
  func measureAnew() { state.withLock { $0.histogram.reset() } }

  /// Writes nothing more once the answers that are waited for have come.
  func stop() { state.withLock { $0.isStopped = true } }

  private func write(_ number: Int) throws(FanoutError) {
    let connection = try PublishingConnection(plan.address, timeoutSeconds: plan.answerSeconds)
    let objects = Array(stride(from: number, to: plan.objects, by: plan.writers))
    let pause = UInt64(1_000_000_000 * plan.writers / plan.writesPerSecond)
    // Not all at once.
    var due = MonotonicClock.now() + pause * UInt64(number) / UInt64(plan.writers)
    var last: UInt64 = 0
    for turn in 0... {
      if state.withLock({ $0.isStopped }) { return }
      let now = MonotonicClock.now()
      if now < due { usleep(UInt32((due - now) / 1000)) }
      // A write that had to wait for the answer to the one before has waited all the same.
      let start = now < due ? MonotonicClock.now() : due
      due += pause
      let object = objects[turn % objects.count]
      // Numbers grow strictly, also where the clock is coarse: subscribers count on it.
      last = max(MonotonicClock.now(), last + 1)
      try connection.exchange(plan.address.publication(plan.path(object), last, sizeBytes: plan.sizeBytes))
      ledger.note(object, last)
      let end = MonotonicClock.now()
      state.withLock { _ = $0.histogram.record((end - start) / 1000) }
    }
  }
}
