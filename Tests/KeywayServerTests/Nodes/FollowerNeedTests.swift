import KeyValueModel
import Support
import Testing

@testable import Cluster
@testable import KeywayServer

@Suite("Retention of a journal for its followers") struct FollowerNeedTests {
  private final class World: Sendable {
    let clock: Locked<UInt64>
    let followers: Followers

    init(seconds: Int = 600, bytes: Int = 1_000, limit: Int = 3, startingAt start: UInt64 = 1_000) {
      clock = Locked(start * 1_000_000_000)
      var joining = ClusterOptions.JoiningLimits()
      (joining.seconds, joining.bytes) = (seconds, bytes)
      followers = Followers(limit: limit, joining: joining) { [clock] in clock.withLock { $0 } }
    }

    func pass(_ seconds: UInt64) { clock.withLock { $0 += seconds * 1_000_000_000 } }
  }

  @Test("Records after a copy are retained until its follower has them, revision by revision")
  func joining() {
    let world = World()
    let followers = world.followers
    #expect(followers.forgettable(upTo: 50, 0) == 50)
    let copy = followers.beginCopy(after: 40)
    #expect(followers.forgettable(upTo: 50, 0) == 40)
    followers.note(copy, of: 45)
    #expect(followers.forgettable(upTo: 50, 0) == 45)
    world.pass(300)
    #expect(followers.forgettable(upTo: 90, 500) == 45)
    #expect(followers.note("f", at: 45) == .new)
    #expect(followers.forgettable(upTo: 90, 500) == 45)
    #expect(followers.note("f", at: 70) == .known)
    #expect(followers.forgettable(upTo: 90, 500) == 70)
    #expect(followers.note("f", at: 95) == .known)
    #expect(followers.forgettable(upTo: 90, 500) == 90)
    let failed = followers.beginCopy(after: 10)
    followers.end(failed)
    #expect(followers.forgettable(upTo: 90, 500) == 90)
  }

  @Test("It is kept for no longer than the seconds and bytes of the limits, and for those alone that are heard")
  func bounds() {
    let world = World()
    let followers = world.followers
    _ = followers.beginCopy(after: 10)
    #expect(followers.forgettable(upTo: 20, 100) == 10)
    #expect(followers.forgettable(upTo: 30, 1_099) == 10)
    #expect(followers.forgettable(upTo: 30, 1_100) == 30)
    _ = followers.beginCopy(after: 12)
    #expect(followers.forgettable(upTo: 30, 1_100) == 12)
    world.pass(599)
    #expect(followers.forgettable(upTo: 30, 1_100) == 12)
    world.pass(1)
    #expect(followers.forgettable(upTo: 30, 1_100) == 30)
    _ = followers.note("g", at: 20)
    #expect(followers.forgettable(upTo: 30, 1_100) == 20)
    world.pass(11)
    #expect(followers.forgettable(upTo: 30, 1_100) == 30)
    // A follower that fell too far behind and caught up gets its full time again.
    _ = followers.note("g", at: 20)
    #expect(followers.forgettable(upTo: 30, 9_000) == 30)
    _ = followers.note("g", at: 35)
    #expect(followers.forgettable(upTo: 30, 9_000) == 30)
    #expect(followers.forgettable(upTo: 40, 9_000) == 35)
  }

  @Test("No more copies count than nodes can follow, and one that is fetched again and again takes the oldest place")
  func copies() {
    let world = World(limit: 2)
    for revision in [1, 2, 3] as [Revision] { _ = world.followers.beginCopy(after: revision) }
    #expect(world.followers.forgettable(upTo: 30, 0) == 2)
    #expect(world.followers.note("f", at: 2) == .new)
    #expect(world.followers.note("f", at: 40) == .known)
    #expect(world.followers.forgettable(upTo: 30, 0) == 3)
  }

  @Test("A follower that has just made a request is present, however recently the machine was started")
  func youngClock() {
    let followers = World(startingAt: 5).followers
    #expect(followers.note("f", at: 45) == .new)
    #expect(followers.forgettable(upTo: 90, 0) == 45)
    #expect(followers.note("f", at: 45) == .known)
    #expect(followers.names == ["f"])
  }
}
