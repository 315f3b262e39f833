import HTTPServer
import Support
import TestKit
import Testing

@testable import KeywayServer

@Suite("Waits for a revision") struct RevisionWaitsTests {
  private func limits(seconds: Int) -> RevisionWaits.Limits {
    var limits = RevisionWaits.Limits()
    limits.seconds = seconds
    return limits
  }

  @Test("A wait is over so many seconds after it began, whenever it was added")
  func deadlines() {
    let clock = Locked<UInt64>(1_000)
    let waits = RevisionWaits(limits(seconds: 5)) { clock.withLock { $0 } }
    #expect(waits.nextDeadline == nil)
    waits.add(of: .unknown, until: 7, present: { 6 }) {}
    clock.withLock { $0 = 3_000 }
    waits.add(of: .unknown, until: 8, present: { 6 }) {}
    #expect(waits.nextDeadline == 5_000_001_000)
    waits.add(of: .unknown, until: 8, since: 500, present: { 6 }) {}
    #expect(waits.nextDeadline == 5_000_000_500)
    waits.reached(7)
    #expect(waits.nextDeadline == 5_000_000_500 && waits.count == 2)
    waits.reached(8)
    #expect(waits.nextDeadline == nil && waits.count == 0)
  }

  @Test("Waits end when their time is over, though no revision comes and no other code looks after them")
  func ending() throws {
    let waits = RevisionWaits(limits(seconds: 1)) { UInt64(SystemClock.nanoseconds) }
    let ended = Locked<[Int]>([])
    for number in 1...2 {
      waits.add(of: .unknown, until: 7, present: { 6 }) { ended.withLock { $0.append(number) } }
    }
    #expect(Deadline().awaits { ended.withLock { $0.count } == 2 })
    waits.add(of: .unknown, until: 7, present: { 6 }) { ended.withLock { $0.append(3) } }
    #expect(Deadline().awaits { ended.withLock { $0.last } == 3 })
    #expect(waits.count == 0)
  }

  @Test("A wait that began long ago is over at once")
  func late() throws {
    let waits = RevisionWaits(limits(seconds: 3_600)) { 3_601 * 1_000_000_000 }
    let hasEnded = Locked(false)
    waits.add(of: .unknown, until: 7, since: 0, present: { 6 }) { hasEnded.withLock { $0 = true } }
    #expect(Deadline().awaits { hasEnded.withLock { $0 } })
  }
}
