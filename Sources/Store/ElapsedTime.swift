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
