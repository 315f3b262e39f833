import Support

/// The clock that commits are dated by: the wall clock, except that it never goes backwards, even after the wall clock
/// is set back or the server restarts.
///
/// While the wall clock is behind, this clock advances at half speed until the wall clock has caught up. Data kept for
/// a limited time, such as the history, still ages, and a small correction is soon absorbed. The state is guarded by
/// its lock, which is always the innermost lock.
final class CommitClock: Sendable {
  /// A moment at which the time was known, in milliseconds since 1970 and in milliseconds of the monotonic clock.
  private struct Anchor {
    var time = Int64.min
    var elapsed: UInt64 = 0

    func time(at elapsed: UInt64) -> Int64 {
      let (time, overflows) = time.addingReportingOverflow(Int64((elapsed - min(elapsed, self.elapsed)) / 2))
      return overflows ? .max : time
    }
  }

  private let anchor = Locked(Anchor())
  private let wall: @Sendable () -> Int64
  private let elapsed: @Sendable () -> UInt64

  /// Creates a clock over `wall`, which returns milliseconds since 1970, and `elapsed`, which returns milliseconds of a
  /// monotonic clock.
  init(wall: @escaping @Sendable () -> Int64, elapsed: @escaping @Sendable () -> UInt64) {
    (self.wall, self.elapsed) = (wall, elapsed)
  }

  /// Returns the time in milliseconds since 1970, which is never earlier than a time returned before.
  func now() -> Int64 {
    anchor.withLock { anchor in
      let elapsed = elapsed()
      let time = anchor.time(at: elapsed)
      let wall = wall()
      guard wall >= time else { return time }
      anchor = Anchor(time: wall, elapsed: elapsed)
      return wall
    }
  }

  /// Advances the clock to the time of a commit that was read or received, so that later commits are not dated before
  /// it.
  func advance(to time: Int64) {
    anchor.withLock { anchor in
      let elapsed = elapsed()
      if time > anchor.time(at: elapsed) { anchor = Anchor(time: time, elapsed: elapsed) }
    }
  }
}

/// The monotonic time, which cannot be set.
package enum ElapsedTime {
  /// Returns milliseconds of a monotonic clock that also advances while the machine sleeps.
  package static let milliseconds: @Sendable () -> UInt64 = {
    let start = ContinuousClock.now
    return {
      let (seconds, attoseconds) = (ContinuousClock.now - start).components
      return UInt64(max(0, seconds)) * 1_000 + UInt64(max(0, attoseconds / 1_000_000_000_000_000))
    }
  }()
}
