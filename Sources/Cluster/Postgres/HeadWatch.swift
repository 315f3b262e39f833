import Foundation
import Glibc
import HTTPServer
import Store
import Support

/// Polls the head of a journal once a second, and at once when another node has notified of a change, and notifies the
/// other nodes of this node's changes, on a thread and a connection of its own. With a database that does not support
/// `LISTEN`, only the polling remains.
///
/// `state` holds all mutable state; its lock is held only briefly, and no other lock is taken under it.
final class HeadWatch: Sendable {
  /// A change that the other nodes are notified of.
  enum Notice: Equatable, Sendable {
    /// All records up to this revision exist.
    case record(UInt64)
    /// Something other than a record has changed.
    case change

    /// Returns the notice to send instead of both.
    func joined(with other: Notice) -> Notice {
      if case .record(let one) = self, case .record(let two) = other { .record(max(one, two)) } else { .change }
    }

    /// The payload of the notification: the revision, or nothing.
    var payload: String { if case .record(let revision) = self { "\(revision)" } else { "" } }
  }

  /// The calls that the watch makes to its journal.
  struct Owner: Sendable {
    /// Queries the head through a connection and, if the second argument is true, the new records. Returns false if the
    /// watch must end.
    let look: @Sendable (PostgresConnection, Bool) throws(PostgresError) -> Bool
    /// Returns the newest record that this node has, and whether other nodes send it theirs with the answers to writes.
    let known: @Sendable () -> (revision: UInt64, isHanded: Bool)
  }

  private struct State {
    /// The notice to send; nil if there is none.
    var notice: Notice?
    /// True if the thread checks for a notice by itself in a moment, and need not be woken.
    var isResting = false
    var isStopped = false
  }

  private let address: String
  private let patience: Duration
  private let state = Locked(State())
  private let wake: WakeDescriptor

  private static let interval = Duration.seconds(1)
  /// The minimum time between two notifications: notices in between are joined.
  private static let rest = Duration.milliseconds(10)
  /// Sends a notification. No client waits for this commit, so it waits neither for the disk nor for a standby. The
  /// setting applies to this transaction only, because behind a pooler the session may be used for an append next.
  private static let notifyStatement = PostgresStatement(
    name: "keyway_notify",
    text: "SELECT set_config('synchronous_commit', 'off', true), pg_notify('keyway', $1)")
  /// The minimum and maximum delays between attempts to connect, in milliseconds.
  private static let pauses: ClosedRange<Int32> = 100...2_000

  init(_ address: String, patience: Duration) throws(JournalError) {
    guard let wake = WakeDescriptor() else {
      throw .unusable("no descriptor is left: raise the limit of the process (ulimit -n)")
    }
    (self.address, self.patience, self.wake) = (address, patience, wake)
  }

  /// Starts the thread.
  func start(_ owner: Owner) {
    Thread.detachNewThread { [self] in
      var pause = Self.pauses.lowerBound
      while !isStopped {
        do throws(PostgresError) {
          try run(owner) { pause = Self.pauses.lowerBound }
          return
        } catch {
          // The journal reports the silence; here it suffices to try again.
          pauseThread(pause)
          pause = min(Self.pauses.upperBound, pause * 2)
        }
      }
    }
  }

  /// Queues a notification of the other nodes. Returns at once; notices in quick succession are joined.
  func notify(_ notice: Notice) {
    let isToBeWoken = state.withLock { state in
      defer { state.notice = state.notice.map { $0.joined(with: notice) } ?? notice }
      return state.notice == nil && !state.isResting
    }
    if isToBeWoken { wake.wake() }
  }

  /// Stops the thread, within the time limit of a call to the database.
  func stop() {
    state.withLock { $0.isStopped = true }
    wake.wake()
  }

  private var isStopped: Bool { state.withLock { $0.isStopped } }

  private func run(_ owner: Owner, whenConnected: () -> Void) throws(PostgresError) {
    let connection = try PostgresConnection(address)
    var speaks = true
    do throws(PostgresError) {
      try connection.execute("LISTEN keyway", within: patience)
    } catch .refused {
      speaks = false
    }
    whenConnected()
    var notifications = JournalNotifications()
    var (nextLook, restEnd) = (ContinuousClock.now, ContinuousClock.now)
    while !isStopped {
      let isNotified = notifications.isDue(at: .now, known: owner.known().revision)
      if isNotified || nextLook <= .now {
        guard try owner.look(connection, isNotified) else { return }
        nextLook = .now + Self.interval
      }
      if restEnd <= .now, let notice = takeNotice() {
        if speaks { try send(notice, connection) }
        restEnd = .now + Self.rest
      }
      let end = min(nextLook, notifications.due ?? nextLook, state.withLock { $0.isResting } ? restEnd : nextLook)
      switch connection.waitForNotification(or: wake.descriptor, within: end - .now) {
      case .notification(let revision):
        let (known, isHanded) = owner.known()
        notifications.receive(revision, at: .now, known: known, isHanded: isHanded)
      case .nothing: break
      case .lost: throw .lost("the connection is gone")
      }
      wake.reset()
    }
  }

  /// Returns the notice to send, and clears it. After a notice the thread rests, and is not woken for further ones
  /// meanwhile.
  private func takeNotice() -> Notice? {
    state.withLock { state in
      defer { (state.notice, state.isResting) = (nil, state.notice != nil) }
      return state.notice
    }
  }

  private func send(_ notice: Notice, _ connection: PostgresConnection) throws(PostgresError) {
    do throws(PostgresError) {
      try connection.execute(Self.notifyStatement, [.text(notice.payload)], within: patience)
    } catch .refused {
      // A database without this function may support the command.
      do throws(PostgresError) {
        try connection.execute("NOTIFY keyway, '\(notice.payload)'", within: patience)
      } catch .refused {}
    }
  }

  private func pauseThread(_ milliseconds: Int32) {
    var polled = pollfd(fd: wake.descriptor, events: Int16(POLLIN), revents: 0)
    // A stop takes effect at once; a notification waits for the end of the pause.
    let deadline = ContinuousClock.now + .milliseconds(Int(milliseconds))
    while !isStopped, .now < deadline {
      poll(&polled, 1, 50)
      if polled.revents != 0 { wake.reset() }
      usleep(10_000)
    }
  }
}

/// A schedule of the queries for changes that other nodes have notified of: decides, and has no side effects.
///
/// The query is due at once unless other nodes send their records to this one: then the announced records are probably
/// on their way, and get some time to arrive. Records that have arrived need no query.
struct JournalNotifications {
  /// An instant of the monotonic clock.
  typealias Time = ContinuousClock.Instant

  /// The time for which records that may be on their way are awaited.
  static let patience = Duration.milliseconds(25)

  /// The time when the query is due; nil if there is nothing to query.
  private(set) var due: Time?
  /// The revision that is awaited until then; nil if the change is not a record, or is not named.
  private var awaited: UInt64?
  /// The newest revision in a notification.
  private var newest: UInt64 = 0

  /// Notes that another node has notified of a record, or of another change (nil). `known` is the newest record that
  /// this node has; `isHanded` is true if other nodes send it theirs.
  mutating func receive(_ revision: UInt64?, at now: Time, known: UInt64, isHanded: Bool) {
    guard let revision else {
      (due, awaited) = (now, nil)
      return
    }
    guard revision > known else { return }
    newest = max(newest, revision)
    guard due == nil else { return }
    (due, awaited) = (isHanded ? now + Self.patience : now, revision)
  }

  /// Returns true if the query is due now, and then assumes that it is made.
  mutating func isDue(at now: Time, known: UInt64) -> Bool {
    guard let due else { return false }
    if let awaited, awaited <= known {
      self.due = newest > known ? now + Self.patience : nil
      self.awaited = newest
      return false
    }
    guard due <= now else { return false }
    self.due = nil
    return true
  }
}
