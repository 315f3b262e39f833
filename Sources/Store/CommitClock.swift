import Support

/// The clock that commits are dated by: the wall clock, but never backwards, also where that is set back and after a
/// restart.
///
/// While the wall clock is behind, the time goes on at half speed until the wall clock has caught up. So what is kept
/// for a time, such as the history, still ages, and a small correction is over soon. The state is guarded by its lock,
/// which is taken inside every other.
final class CommitClock: Sendable {
  /// A moment at which the time was known, in milliseconds since 1970, and by the clock that only grows.
  private struct Anchor {
    var time = Int64.min
    var elapsed: UInt64 = 0

    func time(at elapsed: UInt64) -> Int64 {
      let (time, isOver) = time.addingReportingOverflow(Int64((elapsed - min(elapsed, self.elapsed)) / 2))
      return isOver ? .max : time
    }
  }

  private let anchor = Locked(Anchor())
  private let wall: @Sendable () -> Int64
  private let elapsed: @Sendable () -> UInt64

  /// A clock over `wall`, which gives milliseconds since 1970, and `elapsed`, which gives milliseconds that only grow.
  init(wall: @escaping @Sendable () -> Int64, elapsed: @escaping @Sendable () -> UInt64) {
    (self.wall, self.elapsed) = (wall, elapsed)
  }

  /// Returns the time in milliseconds since 1970, which is never less than what it was before.
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

  /// Notes the time of a commit that was read or received: later commits are not dated before it.
  func advance(to time: Int64) {
    anchor.withLock { anchor in
      let elapsed = elapsed()
      if time > anchor.time(at: elapsed) { anchor = Anchor(time: time, elapsed: elapsed) }
    }
  }
}

/// The time that has passed, which no one sets.
package enum ElapsedTime {
  /// Milliseconds of a clock that only grows, also while the machine sleeps.
  package static let milliseconds: @Sendable () -> UInt64 = {
    let start = ContinuousClock.now
    return {
      let (seconds, attoseconds) = (ContinuousClock.now - start).components
      return UInt64(max(0, seconds)) * 1_000 + UInt64(max(0, attoseconds / 1_000_000_000_000_000))
    }
  }()
}
