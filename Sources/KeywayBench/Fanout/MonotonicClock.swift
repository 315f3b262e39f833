import Glibc

/// The clock of the latencies: the same in both threads, and never set back.
enum MonotonicClock {
  /// Nanoseconds since some fixed moment.
  static func now() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }
}
