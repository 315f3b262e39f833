import Glibc

/// Measures how long something takes, by a clock that never goes back.
package struct Stopwatch: Sendable {
  private let start: Int64

  /// Runs from now on.
  package init() { start = Self.now }

  /// How long it has been running.
  package var nanoseconds: Int64 { Self.now - start }

  private static var now: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }
}
