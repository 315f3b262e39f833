/// Whose connections one connection thread works for, and how much of its processor time that takes.
///
/// The thread is told apart by what it serves; what it does until it turns to another connection is for the one before:
/// libmicrohttpd calls nothing where it ends with one.
///
/// `@unchecked Sendable`: touched by that thread alone.
final class ThreadAttention: @unchecked Sendable {
  private var share: TrafficShare?
  private var since: Int64 = 0

  /// The thread turns to a connection of an address, whose share is given, or to one whose time does not count. `clock`
  /// gives the thread's processor time in nanoseconds.
  func turn(to next: TrafficShare?, clock: () -> Int64) {
    guard share != nil || next != nil else { return }
    let now = clock()
    share?.count(Int(now - since))
    (share, since) = (next, now)
  }
}
