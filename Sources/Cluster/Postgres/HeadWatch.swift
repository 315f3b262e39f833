import Foundation
import Glibc
import HTTPServer
import Store
import Support

/// Looks at the head of a journal once a second, and at what comes next at once when another node has told of it, and
/// tells the others of this node's, on a thread and a connection of its own. Where a database knows no `LISTEN`, the
/// look of each second is what there is.
///
/// `state` is all that changes, under its lock, which is held for a look; no other is taken inside it.
final class HeadWatch: Sendable {
  /// What the others are told of.
  enum Notice: Equatable, Sendable {
    /// All records up to this revision are there.
    case record(UInt64)
    /// Something that is no record has changed.
    case change

    /// What is told in the place of both.
    func joined(with other: Notice) -> Notice {
      if case .record(let one) = self, case .record(let two) = other { .record(max(one, two)) } else { .change }
    }

    /// What stands in the notification: the revision, or nothing.
    var payload: String { if case .record(let revision) = self { "\(revision)" } else { "" } }
  }

  /// What the watch asks of its journal.
  struct Owner: Sendable {
    /// Asks a connection for the head, and with `true` for the records that are new; false where there is no reason to
    /// go on.
    let look: @Sendable (PostgresConnection, Bool) throws(PostgresError) -> Bool
    /// The newest record that this node has, and whether others hand it theirs.
    let known: @Sendable () -> (revision: UInt64, isHanded: Bool)
  }

  private struct State {
    /// What the others are to be told of.
    var notice: Notice?
    /// Whether the thread looks for a notice by itself in a moment.
    var isResting = false
    var isStopped = false
  }

  private let address: String
  private let patience: Duration
  private let state = Locked(State())
  private let wake: WakeDescriptor

  private static let interval = Duration.seconds(1)
  /// Between two notifications: what comes meanwhile is told together.
  private static let rest = Duration.milliseconds(10)
  /// Tells the others. It is a commit for which nobody waits, neither for the disk nor for a standby; that is said for
  /// this one alone, because behind a pooler the session may be that of an append next.
  private static let notifyStatement = PostgresStatement(
    name: "keyway_notify",
    text: "SELECT set_config('synchronous_commit', 'off', true), pg_notify('keyway', $1)")
  /// Between attempts to connect, at the least and at the most, in milliseconds.
  private static let pauses: ClosedRange<Int32> = 100...2_000

  init(_ address: String, patience: Duration) throws(JournalError) {
    guard let wake = WakeDescriptor() else {
      throw .unusable("no descriptor is left: raise the limit of the process (ulimit -n)")
    }
    (self.address, self.patience, self.wake) = (address, patience, wake)
  }

  /// Begins.
  func start(_ owner: Owner) {
    Thread.detachNewThread { [self] in
      var pause = Self.pauses.lowerBound
      while !isStopped {
        do throws(PostgresError) {
          try run(owner) { pause = Self.pauses.lowerBound }
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
  func notify(_ notice: Notice) {
    let isToBeWoken = state.withLock { state in
      defer { state.notice = state.notice.map { $0.joined(with: notice) } ?? notice }
      return state.notice == nil && !state.isResting
    }
    if isToBeWoken { wake.wake() }
  }

  /// Ends it, within the time of a call to the database.
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
    var news = HeardNews()
    var (nextLook, restEnd) = (ContinuousClock.now, ContinuousClock.now)
    while !isStopped {
      let isTold = news.isDue(at: .now, known: owner.known().revision)
      if isTold || nextLook <= .now {
        guard try owner.look(connection, isTold) else { return }
        nextLook = .now + Self.interval
      }
      if restEnd <= .now, let notice = takeNotice() {
        if speaks { try tell(notice, connection) }
        restEnd = .now + Self.rest
      }
      let end = min(nextLook, news.due ?? nextLook, state.withLock { $0.isResting } ? restEnd : nextLook)
      switch connection.waitForNotification(or: wake.descriptor, within: end - .now) {
      case .notification(let revision):
        let (known, isHanded) = owner.known()
        news.hear(revision, at: .now, known: known, isHanded: isHanded)
      case .nothing: break
      case .lost: throw .lost("the connection is gone")
      }
      wake.reset()
    }
  }

  /// What the others are to be told of. After something the thread rests, and is not woken for what comes meanwhile.
  private func takeNotice() -> Notice? {
    state.withLock { state in
      defer { (state.notice, state.isResting) = (nil, state.notice != nil) }
      return state.notice
    }
  }

  private func tell(_ notice: Notice, _ connection: PostgresConnection) throws(PostgresError) {
    do throws(PostgresError) {
      try connection.execute(Self.notifyStatement, [.text(notice.payload)], within: patience)
    } catch .refused {
      // A database that has no such function may know the command.
      do throws(PostgresError) {
        try connection.execute("NOTIFY keyway, '\(notice.payload)'", within: patience)
      } catch .refused {}
    }
  }

  private func pauseThread(_ milliseconds: Int32) {
    var polled = pollfd(fd: wake.descriptor, events: Int16(POLLIN), revents: 0)
    // A stop is heard at once; a notification waits with the rest.
    let deadline = ContinuousClock.now + .milliseconds(Int(milliseconds))
    while !isStopped, .now < deadline {
      poll(&polled, 1, 50)
      if polled.revents != 0 { wake.reset() }
      usleep(10_000)
    }
  }
}

/// When the database is asked about what other nodes have told of: decides, and asks nothing by itself.
///
/// It is asked at once, but where other nodes hand their records to this one: then those that it has heard of are
/// likely to be on their way, and are left some time to come. What has come needs no question.
struct HeardNews {
  /// When a time is, of the clock that only grows.
  typealias Time = ContinuousClock.Instant

  /// For how long records that may be on their way are waited for.
  static let patience = Duration.milliseconds(25)

  /// When the database is to be asked; nil where there is nothing to ask.
  private(set) var due: Time?
  /// The revision that is waited for until then; nil where what has changed is no record, or is not said.
  private var awaited: UInt64?
  /// The newest revision that was heard of.
  private var newest: UInt64 = 0

  /// Another node has told of a record, or of something else. `known` is the newest record that this node has, and
  /// `isHanded` whether others hand it theirs.
  mutating func hear(_ revision: UInt64?, at now: Time, known: UInt64, isHanded: Bool) {
    guard let revision else {
      (due, awaited) = (now, nil)
      return
    }
    guard revision > known else { return }
    newest = max(newest, revision)
    guard due == nil else { return }
    (due, awaited) = (isHanded ? now + Self.patience : now, revision)
  }

  /// Whether the database is to be asked now, which is taken to be done then.
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
