import Glibc
package import Support

/// A moment after which a caller stops waiting. It is generous: it is for events that never come, not for measuring.
package struct Deadline: Sendable {
  /// The seconds that a caller waits for something without progress before it counts as hung. A busy machine is slow,
  /// and not hung; if nothing hangs, no caller waits that long.
  package static let patienceSeconds = 300.0

  /// The same as a duration of Swift's clocks.
  package static let patience = Duration.seconds(patienceSeconds)

  private let end: UInt64

  /// Creates a deadline in so many seconds.
  package init(seconds: Double = Self.patienceSeconds) { end = SystemClock.after(seconds: seconds) }

  /// True if it has passed.
  package var hasPassed: Bool { SystemClock.now() >= end }

  /// The remaining milliseconds, for poll(2): at least one until it has passed.
  package var remainingMilliseconds: Int32 {
    let now = SystemClock.now()
    return now >= end ? 0 : max(1, Int32(clamping: (end - now) / 1_000_000))
  }

  /// Evaluates `condition` repeatedly, with pauses, until it holds. Returns false if the deadline passes first.
  package func awaits(pauseMicroseconds: UInt32 = 10_000, _ condition: () throws -> Bool) rethrows -> Bool {
    while try !condition() {
      if hasPassed { return false }
      usleep(pauseMicroseconds)
    }
    return true
  }

  /// The same for a task, which suspends during the pauses.
  package func comes(pauseMilliseconds: Int = 1, _ condition: () async throws -> Bool) async rethrows -> Bool {
    while try await !condition() {
      if hasPassed { return false }
      try? await Task.sleep(for: .milliseconds(pauseMilliseconds))
    }
    return true
  }

  /// Evaluates `condition` repeatedly until it holds. Returns false if the value of `progress` does not change for so
  /// many seconds before that.
  package static func awaits<Progress: Equatable>(
    seconds: Double = patienceSeconds, progress: () -> Progress, _ condition: () throws -> Bool
  ) rethrows -> Bool {
    var (deadline, last) = (Self(seconds: seconds), progress())
    while try !condition() {
      let now = progress()
      if now != last { (deadline, last) = (Self(seconds: seconds), now) }
      if deadline.hasPassed { return false }
      usleep(10_000)
    }
    return true
  }
}

/// Moments of latencies and deadlines. The clock is the same in all threads, and monotonic.
extension SystemClock {
  /// Nanoseconds since some fixed moment.
  package static func now() -> UInt64 { UInt64(nanoseconds) }

  /// Returns the moment in so many seconds, on the same scale.
  package static func after(seconds: Double) -> UInt64 { now() + UInt64(seconds * 1e9) }

  /// Returns the seconds that have passed since a moment.
  package static func seconds(since start: UInt64) -> Double { Double(now() - start) / 1e9 }
}
