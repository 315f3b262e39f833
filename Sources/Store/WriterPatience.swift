import Glibc

/// How long the writer waits for more writes before it commits those that wait.
///
/// A crowd that was answered together comes back together, and the first of it would have a sync of its own while all
/// the others wait for the next (PostgreSQL's `commit_delay`): a fraction of what a sync takes, and only where there
/// was a crowd. The store's own writes wait a little longer for a client's to go with: a sync of theirs would have
/// clients wait that come meanwhile. So do slow writes, since who comes just after one has begun waits for all of it.
struct WriterPatience: Sendable {
  /// How many writes the last batch had, and how long its sync took.
  var lastBatchCount = 0
  var lastSync = Duration.zero

  /// For the store's own writes.
  private static let own = Duration.milliseconds(5)
  /// Between two looks at the queue, in microseconds.
  private static let pause: UInt32 = 50

  /// Waits as long as it is of use. `looking` has a question answered by the queue as it is then.
  func wait<Write>(_ looking: ((WriteQueue<Write>) -> Bool) -> Bool) {
    Self.wait(Self.own) { looking { $0.canWait } }
    var microseconds = 0
    _ = looking {
      microseconds = $0.slowPatience
      return true
    }
    if microseconds > 0 { Self.wait(.microseconds(microseconds)) { looking { $0.slowPatience > 0 } } }
    let (expected, patience) = (lastBatchCount * 3 / 4, min(lastSync / 4, .milliseconds(1)))
    guard expected > 1, patience > .microseconds(100) else { return }
    Self.wait(patience) { looking { (1..<expected).contains($0.count) } }
  }

  private static func wait(_ time: Duration, while isOfUse: () -> Bool) {
    let deadline = ContinuousClock.now + time
    while isOfUse(), .now < deadline { usleep(pause) }
  }
}
