import KeyValueModel
import Support
import TestKit
import Testing

@testable import Store

@Suite("The clock that commits are dated by")
struct CommitClockTests {
  /// A wall clock and a monotonic one, both set by the test.
  private final class Hands: Sendable {
    private let hands = Locked((wall: Int64(1_000_000), elapsed: UInt64(0)))

    var wall: Int64 { hands.withLock { $0.wall } }
    var elapsed: UInt64 { hands.withLock { $0.elapsed } }

    func pass(_ milliseconds: UInt64) {
      hands.withLock { hands in
        hands.wall += Int64(milliseconds)
        hands.elapsed += milliseconds
      }
    }

    func set(wall: Int64) { hands.withLock { $0.wall = wall } }

    var clock: CommitClock { CommitClock(wall: { self.wall }, elapsed: { self.elapsed }) }
  }

  @Test("It is the wall clock, and where that is set back, it goes on at half speed until that has caught up")
  func setBack() {
    let hands = Hands()
    let clock = hands.clock
    #expect(clock.now() == 1_000_000)
    hands.set(wall: 990_000)
    #expect(clock.now() == 1_000_000)
    for _ in 0..<1_000 {
      hands.pass(1)
      _ = clock.now()
    }
    #expect(clock.now() == 1_000_500)
    hands.pass(19_000)
    #expect(clock.now() == 1_010_000 && hands.wall == 1_010_000)
    hands.pass(7)
    #expect(clock.now() == 1_010_007)
  }

  @Test("It never goes back, whatever the wall clock does and commits of others say")
  func random() {
    var random = SplitMix64(seed: seed)
    let hands = Hands()
    let clock = hands.clock
    var last = clock.now()
    for step in 0..<5_000 {
      switch Int.random(in: 0..<6, using: &random) {
      case 0: hands.set(wall: Int64.random(in: 0...2_000_000, using: &random))
      case 1: clock.advance(to: Int64.random(in: 0...2_000_000, using: &random))
      default: hands.pass(UInt64.random(in: 0...3, using: &random))
      }
      let now = clock.now()
      #expect(now >= last && now >= hands.wall, "seed \(seed), step \(step)")
      last = now
    }
    clock.advance(to: .max)
    hands.pass(10)
    #expect(clock.now() == .max)
  }

  @Test("Times of commits never decrease, also after a restart with the clock behind")
  func commits() async throws {
    let folder = Folder()
    let hands = Hands()
    for setBack: Int64 in [0, 50_000, 3_600_000] {
      let journal = try SQLiteJournal(directory: folder.path, durability: .synced) {
        JournalIdentity(epoch: "test", schema: accounts)
      }
      let store = Store(
        schema: try Schema(yaml: accounts), journal: journal, limits: StoreLimits(), publisher: Recorder(),
        now: { hands.wall }, elapsed: { hands.elapsed })
      _ = try store.recover()
      hands.set(wall: hands.wall - setBack)
      for _ in 0..<3 {
        await withCheckedContinuation { continuation in
          _ = store.submit(Transaction([])) { _, _, _ in continuation.resume() }
        }
        hands.pass(10)
        hands.set(wall: hands.wall - 15)
      }
      let records = try journal.records(after: 0, limit: 100, bytes: .max, waiting: .zero)
      let times = records.map(\.milliseconds)
      #expect(!times.isEmpty && times == times.sorted(), "\(times)")
      store.close()
    }
  }
}
