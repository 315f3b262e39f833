import Testing

@testable import Cluster

/// The times at which a node queries the database after notifications from other nodes.
@Suite("Notifications from other nodes")
struct JournalNotificationsTests {
  private let start = ContinuousClock.now

  private func time(_ milliseconds: Int) -> JournalNotifications.Time { start + .milliseconds(milliseconds) }

  /// Returns `isDue` at each of these times, with the revision known then.
  private func asked(_ notifications: inout JournalNotifications, _ looks: [(JournalNotifications.Time, known: UInt64)])
    -> [Bool]
  {
    looks.map { notifications.isDue(at: $0.0, known: $0.known) }
  }

  @Test("A new revision is queried at once, and once; a known one is not, and an unnamed one always is")
  func asking() {
    var notifications = JournalNotifications()
    #expect(asked(&notifications, [(time(0), 0)]) == [false])
    notifications.receive(5, at: time(0), known: 5, isHanded: false)
    #expect(notifications.due == nil)
    notifications.receive(6, at: time(1), known: 5, isHanded: false)
    #expect(asked(&notifications, [(time(1), 5), (time(1), 5)]) == [true, false])
    notifications.receive(nil, at: time(2), known: 99, isHanded: true)
    #expect(asked(&notifications, [(time(2), 99)]) == [true])
    #expect(notifications.due == nil)
  }

  @Test("If records are handed over, those that come in time are not queried, and the others are")
  func waiting() {
    var notifications = JournalNotifications()
    let patience = JournalNotifications.patience
    notifications.receive(6, at: time(0), known: 5, isHanded: true)
    notifications.receive(7, at: time(1), known: 5, isHanded: true)
    #expect(notifications.due == time(0) + patience)
    // The first record has arrived at the second check, and the second gets as much time as the first.
    #expect(asked(&notifications, [(time(1), 5), (time(2), 6)]) == [false, false])
    #expect(notifications.due == time(2) + patience)
    #expect(asked(&notifications, [(time(3), 7)]) == [false])
    #expect(notifications.due == nil)
    notifications.receive(9, at: time(4), known: 7, isHanded: true)
    #expect(asked(&notifications, [(time(4) + patience, 8)]) == [true])
    #expect(notifications.due == nil)
    // A notification without a record does not wait with them.
    notifications.receive(10, at: time(50), known: 8, isHanded: true)
    notifications.receive(nil, at: time(51), known: 8, isHanded: true)
    #expect(asked(&notifications, [(time(51), 10)]) == [true])
  }
}
