import Glibc

/// A moment after which a caller gives up waiting. Generous: it is there for what never comes, not to measure.
package struct Deadline: Sendable {
  private let end: UInt64

  /// So many seconds from now.
  package init(seconds: Double = 60) { end = MonotonicClock.after(seconds: seconds) }

  /// Whether it has passed.
  package var hasPassed: Bool { MonotonicClock.now() >= end }

  /// What is left, for poll(2); at least one while there is anything left.
  package var remainingMilliseconds: Int32 {
    let now = MonotonicClock.now()
    return now >= end ? 0 : max(1, Int32(clamping: (end - now) / 1_000_000))
  }

  /// Asks `condition` again and again, with a pause after each time, until it holds; false when the deadline passes
  /// first.
  package func awaits(pauseMicroseconds: UInt32 = 10_000, _ condition: () throws -> Bool) rethrows -> Bool {
    while try !condition() {
      if hasPassed { return false }
      usleep(pauseMicroseconds)
    }
    return true
  }
}
