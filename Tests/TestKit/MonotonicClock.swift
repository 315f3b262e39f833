import Glibc

/// The clock of latencies and deadlines: the same in all threads, and never set back.
package enum MonotonicClock {
  /// Nanoseconds since some fixed moment.
  package static func now() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }

  /// The moment that is so many seconds away, on the same scale.
  package static func after(seconds: Double) -> UInt64 { now() + UInt64(seconds * 1e9) }

  /// The seconds that have passed since a moment.
  package static func seconds(since start: UInt64) -> Double { Double(now() - start) / 1e9 }
}
