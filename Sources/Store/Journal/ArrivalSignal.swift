import Foundation

/// Wakes readers that wait for a revision to come.
///
/// Sendable although it holds a class that is not: `NSCondition` is its own lock, and guards `last`.
package final class ArrivalSignal: @unchecked Sendable {
  private let condition = NSCondition()
  private var last: UInt64 = 0

  /// Nothing has come yet.
  package init() {}

  /// Says that everything up to a revision has come.
  package func announce(_ revision: UInt64) {
    condition.lock()
    last = max(last, revision)
    condition.broadcast()
    condition.unlock()
  }

  /// Waits until something beyond a revision has come, or the time is over. `present` is what has come already.
  package func wait(beyond revision: UInt64, for duration: Duration, present: () -> UInt64) {
    guard present() <= revision else { return }
    let (seconds, attoseconds) = duration.components
    let deadline = Date(timeIntervalSinceNow: Double(seconds) + Double(attoseconds) * 1e-18)
    condition.lock()
    defer { condition.unlock() }
    while last <= revision, condition.wait(until: deadline) {}
  }
}
