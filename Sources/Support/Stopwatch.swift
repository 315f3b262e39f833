import Glibc

/// Measures how long something takes, by a clock that never goes back.
package struct Stopwatch: Sendable {
  private let start: Int64

  /// Runs from now on.
  package init() { start = Self.now }

  /// How long it has been running.
  package var nanoseconds: Int64 { Self.now - start }

  private static var now: Int64 { clock(CLOCK_MONOTONIC) }

  /// Nanoseconds of a clock.
  fileprivate static func clock(_ id: clockid_t) -> Int64 {
    var time = timespec()
    clock_gettime(id, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }
}

/// Measures how long the thread that uses it has a processor: what it waits for does not count.
package struct ProcessorStopwatch {
  private let start: Int64

  /// Runs from now on.
  package init() { start = Stopwatch.clock(CLOCK_THREAD_CPUTIME_ID) }

  /// How long the thread has had a processor since.
  package var nanoseconds: Int64 { Stopwatch.clock(CLOCK_THREAD_CPUTIME_ID) - start }
}
