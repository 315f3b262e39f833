import Foundation
import Glibc
import Journal
import Locking

/// Looks at the head of a journal once a second, and at once when another node has told of a change (`NOTIFY`), and
/// tells the others of this node's, on a thread and a connection of its own. Where a database knows no `LISTEN`, the
/// look of each second is what there is.
///
/// `state` is all that changes, under its lock, which is held for a look; no other is taken inside it.
final class HeadWatch: Sendable {
  private struct State {
    /// Whether the others are to be told of something.
    var isNotificationDue = false
    var isStopped = false
  }

  private let address: String
  private let patience: Duration
  private let state = Locked(State())
  /// The two ends of a pipe by which the thread is woken.
  private let (wakeEnd, readEnd): (Int32, Int32)

  private static let interval = Duration.seconds(1)
  /// Between attempts to connect, at the least and at the most, in milliseconds.
  private static let pauses: ClosedRange<Int32> = 100...2_000

  init(_ address: String, patience: Duration) throws(JournalError) {
    self.address = address
    self.patience = patience
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { throw .unusable("there is no descriptor left") }
    for end in ends {
      _ = fcntl(end, F_SETFL, O_NONBLOCK)
      _ = fcntl(end, F_SETFD, FD_CLOEXEC)
    }
    (readEnd, wakeEnd) = (ends[0], ends[1])
  }

  deinit {
    close(readEnd)
    close(wakeEnd)
  }

  /// Begins. `look` asks a connection for the head, and gives false where there is no reason to go on.
  func start(_ look: @escaping @Sendable (PostgresConnection) throws(PostgresError) -> Bool) {
    Thread.detachNewThread { [self] in
      var pause = Self.pauses.lowerBound
      while !isStopped {
        do throws(PostgresError) {
          try run(look) { pause = Self.pauses.lowerBound }
          return
        } catch {
          // The journal tells of the silence; here it is enough to try again.
          pauseThread(pause)
          pause = min(Self.pauses.upperBound, pause * 2)
        }
      }
    }
  }

  /// Has the other nodes be told that there is something new. Returns at once; what comes together is told together.
  func notify() {
    let isFirst = state.withLock { state in
      defer { state.isNotificationDue = true }
      return !state.isNotificationDue
    }
    if isFirst { wake() }
  }

  /// Ends it, within the time of a call to the database.
  func stop() {
    state.withLock { $0.isStopped = true }
    wake()
  }

  private var isStopped: Bool { state.withLock { $0.isStopped } }

  private func wake() {
    var byte: UInt8 = 0
    // A full pipe wakes as well.
    _ = write(wakeEnd, &byte, 1)
  }

  private func run(
    _ look: (PostgresConnection) throws(PostgresError) -> Bool, whenConnected: () -> Void
  ) throws(PostgresError) {
    let connection = try PostgresConnection(address)
    var speaks = true
    do throws(PostgresError) {
      try connection.execute("LISTEN keyway", within: patience)
    } catch .refused {
      speaks = false
    }
    whenConnected()
    var nextLook = ContinuousClock.now
    while !isStopped {
      if nextLook <= .now {
        guard try look(connection) else { return }
        nextLook = .now + Self.interval
      }
      if speaks, takeNotification() {
        do throws(PostgresError) { try connection.execute("NOTIFY keyway", within: patience) } catch .refused {}
      }
      switch connection.waitForNotification(or: readEnd, within: nextLook - .now) {
      case .notification: nextLook = .now
      case .nothing: break
      case .lost: throw .lost("the connection is gone")
      }
      drain()
    }
  }

  private func takeNotification() -> Bool {
    state.withLock { state in
      defer { state.isNotificationDue = false }
      return state.isNotificationDue
    }
  }

  private func pauseThread(_ milliseconds: Int32) {
    var polled = pollfd(fd: readEnd, events: Int16(POLLIN), revents: 0)
    // A stop is heard at once; a notification waits with the rest.
    let deadline = ContinuousClock.now + .milliseconds(Int(milliseconds))
    while !isStopped, .now < deadline {
      poll(&polled, 1, 50)
      if polled.revents != 0 { drain() }
      usleep(10_000)
    }
  }

  private func drain() {
    var bytes = [UInt8](repeating: 0, count: 256)
    while read(readEnd, &bytes, bytes.count) > 0 {}
  }
}
