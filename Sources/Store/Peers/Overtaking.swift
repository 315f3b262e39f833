import Glibc

/// For how long a batch is judged anew because other nodes were first. They pass their writes on to the one that was
/// first, so that it seldom takes more than a few attempts.
struct Overtaking {
  private let end = ContinuousClock.now + .seconds(5)
  /// How often others were first.
  private(set) var count = 0

  /// After so many attempts, what can be carried out elsewhere is given back: the node that was first appends again at
  /// once, and this one is behind by as long as it takes to read what was appended.
  private static let attemptsBeforeGivingBack = 2
  /// After so many attempts there is a pause before the next.
  private static let attemptsWithoutPause = 4
  /// The longest pause, in microseconds. It is random, so that those who meet do not meet again.
  private static let longestPause: UInt32 = 20_000

  /// Gives back those of a batch that can be, where it is time to.
  func giveBack(_ waiting: inout ArraySlice<StoreSubmission>) {
    guard count >= Self.attemptsBeforeGivingBack else { return }
    for submission in waiting { submission.giveBack?() }
    waiting.removeAll { $0.giveBack != nil }
  }

  /// Counts one more, and pauses where there were several; false where it is time to give up.
  mutating func goesOn() -> Bool {
    count += 1
    if count > Self.attemptsWithoutPause { usleep(.random(in: 0...Self.longestPause)) }
    return .now < end
  }
}
