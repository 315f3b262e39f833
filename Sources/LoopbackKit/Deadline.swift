import Glibc

/// A moment after which a test gives up waiting. Generous: it is there for what never comes, not to measure.
package struct Deadline {
  private let end: ContinuousClock.Instant

  /// So many seconds from now.
  package init(seconds: Double = 20) {
    end = .now + .seconds(seconds)
  }

  /// Whether it has passed.
  package var hasPassed: Bool { .now >= end }

  /// What is left, for poll(2); at least one while there is anything left.
  package var remainingMilliseconds: Int32 {
    let rest = ContinuousClock.now.duration(to: end) / .milliseconds(1)
    return rest <= 0 ? 0 : max(1, Int32(clamping: Int(rest)))
  }

  /// Asks `condition` again and again until it holds; false when the deadline passes first.
  package func awaits(_ condition: () throws -> Bool) rethrows -> Bool {
    while try !condition() {
      if hasPassed { return false }
      usleep(10_000)
    }
    return true
  }
}
