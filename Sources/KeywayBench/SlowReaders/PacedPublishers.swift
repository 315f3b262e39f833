import Foundation
import Glibc
import Locking

/// Publishes at a fixed rate over a few connections, each on a thread of its own and with values of its own, so that one
/// value's messages come in the order of their numbers.
final class PacedPublishers: Sendable {
  /// How far they are.
  struct Progress: Sendable {
    /// How many messages each value was given.
    var published: [Int]
    /// The message that each value was given last.
    var last: [UInt64]
    var running = 0
    var isStopped = false
    var failure: FanoutError?

    /// How many messages there were.
    var total: Int { published.reduce(0, +) }
  }

  private let plan: SlowReadersPlan
  private let state: Locked<Progress>

  init(_ plan: SlowReadersPlan) {
    self.plan = plan
    state = Locked(
      Progress(
        published: Array(repeating: 0, count: plan.values), last: Array(repeating: 0, count: plan.values)))
  }

  /// How far they are now.
  var progress: Progress { state.withLock { $0 } }

  /// Starts the threads; they end at the first failure, or after `stop`.
  func start() {
    state.withLock { $0.running = plan.publishers }
    for number in 0..<plan.publishers {
      Thread { [self] in
        var failure: FanoutError?
        do throws(FanoutError) { try publish(number) } catch { failure = error }
        state.withLock {
          $0.running -= 1
          $0.failure = $0.failure ?? failure
        }
      }.start()
    }
  }

  /// Publishes nothing more.
  func stop() { state.withLock { $0.isStopped = true } }

  private func publish(_ number: Int) throws(FanoutError) {
    let connection = try PublishingConnection(plan.address, timeoutSeconds: plan.answerSeconds)
    let values = Array(stride(from: number, to: plan.values, by: plan.publishers))
    let pause = UInt64(1_000_000_000 * plan.publishers / plan.commitsPerSecond)
    // Not all at once.
    var due = MonotonicClock.now() + pause * UInt64(number) / UInt64(plan.publishers)
    var last: UInt64 = 0
    for turn in 0... {
      let now = MonotonicClock.now()
      if now < due { usleep(UInt32((due - now) / 1000)) }
      due += pause
      let value = values[turn % values.count]
      // Numbers grow strictly, also where the clock is coarse: subscribers count on it.
      last = max(MonotonicClock.now(), last + 1)
      try connection.exchange(plan.address.publication(plan.path(value), last, sizeBytes: plan.sizeBytes))
      let isStopped = state.withLock {
        $0.published[value] += 1
        $0.last[value] = last
        return $0.isStopped
      }
      if isStopped { return }
    }
  }
}
