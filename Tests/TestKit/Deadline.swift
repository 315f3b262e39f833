import Glibc
package import Support

/// A moment after which a caller gives up waiting. Generous: it is there for what never comes, not to measure.
package struct Deadline: Sendable {
  /// How long a caller waits for something that shows no progress, before it takes it for hung. A machine that is busy
  /// with other work is slow, and not hung; where nothing hangs, nobody waits that long.
  package static let patienceSeconds = 300.0

  /// The same, for what waits by Swift's clocks.
  package static let patience = Duration.seconds(patienceSeconds)

  private let end: UInt64

  /// So many seconds from now.
  package init(seconds: Double = Self.patienceSeconds) { end = SystemClock.after(seconds: seconds) }

  /// Whether it has passed.
  package var hasPassed: Bool { SystemClock.now() >= end }

  /// What is left, for poll(2); at least one while there is anything left.
  package var remainingMilliseconds: Int32 {
    let now = SystemClock.now()
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

  /// The same for a task, which leaves its thread to others during the pauses.
  package func comes(pauseMilliseconds: Int = 1, _ condition: () async throws -> Bool) async rethrows -> Bool {
    while try await !condition() {
      if hasPassed { return false }
      try? await Task.sleep(for: .milliseconds(pauseMilliseconds))
    }
    return true
  }

  /// Asks `condition` again and again until it holds; false where `progress` has had one value for so many seconds
  /// before that.
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

/// Moments of latencies and deadlines: the same in all threads, and never set back.
extension SystemClock {
  /// Nanoseconds since some fixed moment.
  package static func now() -> UInt64 { UInt64(nanoseconds) }

  /// The moment that is so many seconds away, on the same scale.
  package static func after(seconds: Double) -> UInt64 { now() + UInt64(seconds * 1e9) }

  /// The seconds that have passed since a moment.
  package static func seconds(since start: UInt64) -> Double { Double(now() - start) / 1e9 }
}
