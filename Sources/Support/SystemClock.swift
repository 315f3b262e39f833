import Glibc

/// The system's clocks, as numbers that are stored for each stream and compared many times a second.
package enum SystemClock {
  /// Nanoseconds since the machine started. This clock never goes back.
  package static var nanoseconds: Int64 { read(CLOCK_MONOTONIC) }

  /// The same time in milliseconds, with the resolution of the kernel's tick (about 4 ms), which makes it almost free.
  package static var coarseMilliseconds: Int64 { read(CLOCK_MONOTONIC_COARSE) / 1_000_000 }

  /// The coarse time in whole seconds, small enough to store several of them for each stream.
  package static var coarseSeconds: Int32 { Int32(truncatingIfNeeded: coarseMilliseconds / 1_000) }

  /// Nanoseconds for which the calling thread has had a processor.
  package static var threadNanoseconds: Int64 { read(CLOCK_THREAD_CPUTIME_ID) }

  /// Milliseconds since 1970, by the wall clock; negative if the clock is before 1970.
  package static var epochMilliseconds: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    let (milliseconds, overflows) = Int64(time.tv_sec).multipliedReportingOverflow(by: 1000)
    return overflows ? .max : milliseconds &+ Int64(time.tv_nsec) / 1_000_000
  }

  private static func read(_ clock: clockid_t) -> Int64 {
    var time = timespec()
    clock_gettime(clock, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }
}

/// Measures elapsed time.
package struct Stopwatch: Sendable {
  private let start = SystemClock.nanoseconds

  /// Creates a stopwatch that starts now.
  package init() {}

  /// The elapsed nanoseconds.
  package var nanoseconds: Int64 { SystemClock.nanoseconds - start }
}

/// Measures the processor time of the thread that uses it: waiting does not count.
package struct ProcessorStopwatch {
  private let start = SystemClock.threadNanoseconds

  /// Creates a stopwatch that starts now.
  package init() {}

  /// The nanoseconds for which the thread has had a processor since.
  package var nanoseconds: Int64 { SystemClock.threadNanoseconds - start }
}
