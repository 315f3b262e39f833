import Glibc

/// The time since the machine started, as coarse as the kernel's tick (about 4 ms) and for that almost free.
enum MonotonicClock {
  static var milliseconds: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC_COARSE, &time)
    return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
  }

  /// The same time, exactly.
  static var nanoseconds: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }

  /// How long the calling thread has had a processor.
  static var threadNanoseconds: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }

  /// Whole seconds, small enough to keep several of them for each stream.
  static var seconds: Int32 { Int32(truncatingIfNeeded: milliseconds / 1_000) }
}
