import Glibc

/// For how long a batch is judged anew because other nodes were first. They pass their writes on to the one that was
/// first, so that it seldom takes more than a few attempts.
struct Overtaking {
  private let end = ContinuousClock.now + .seconds(5)
  /// How often others were first.
  private(set) var count = 0

  /// After so many attempts there is a pause before the next.
  private static let attemptsWithoutPause = 4
  /// The longest pause, in microseconds. It is random, so that those who meet do not meet again.
  private static let longestPause: UInt32 = 20_000

  /// Counts one more, and pauses where there were several; false where it is time to give up.
  mutating func goesOn() -> Bool {
    count += 1
    if count > Self.attemptsWithoutPause { usleep(.random(in: 0...Self.longestPause)) }
    return .now < end
  }
}
