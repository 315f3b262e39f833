import Foundation
import Glibc
import Locking

/// Publishes the messages of a benchmark, one after the other over one connection, on a thread of its own: the answer
/// to one is awaited before the next, as a single careful writer does it.
final class FanoutPublisher: Sendable {
  /// How far the publisher is.
  struct Progress: Sendable {
    var published = 0
    var startNanoseconds: UInt64 = 0
    var endNanoseconds: UInt64 = 0
    var isDone = false
    var isStopped = false
    var failure: FanoutError?
  }

  private let plan: FanoutPlan
  private let state = Locked(Progress())

  init(_ plan: FanoutPlan) { self.plan = plan }

  /// How far it is now.
  var progress: Progress { state.withLock { $0 } }

  /// Starts the thread; it ends by itself after the last message, at the first failure, or after `stop`.
  func start() {
    Thread { [self] in
      do throws(FanoutError) {
        try publish()
      } catch {
        state.withLock { $0.failure = error }
      }
      let now = MonotonicClock.now()
      state.withLock {
        $0.endNanoseconds = now
        $0.isDone = true
      }
    }.start()
  }

  /// Publishes nothing more.
  func stop() { state.withLock { $0.isStopped = true } }

  private func publish() throws(FanoutError) {
    let connection = try PublishingConnection(plan.address, timeoutSeconds: plan.stallSeconds)
    let start = MonotonicClock.now()
    state.withLock { $0.startNanoseconds = start }
    var last: UInt64 = 0
    for _ in 0..<plan.messages {
      if state.withLock({ $0.isStopped }) { return }
      // Numbers grow strictly, also where the clock is coarse: subscribers count on it.
      last = max(MonotonicClock.now(), last + 1)
      try connection.exchange(plan.publication(last))
      state.withLock { $0.published += 1 }
      if plan.intervalMicroseconds > 0 { usleep(UInt32(plan.intervalMicroseconds)) }
    }
  }
}
