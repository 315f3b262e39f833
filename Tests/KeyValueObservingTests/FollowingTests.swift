import KeyValueModel
import TestKit
import Testing

@testable import KeyValueObserving

@Suite("Collections that are followed before they are observed")
struct FollowingTests {
  private static let schema = """
    entities:
      Team: {keys: {members: {toMany: Member, inverse: team}}}
      Member: {keys: {points: {type: integer, default: 0}, team: {toOne: Team, inverse: members}}}
    """

  /// Makes an operation of one of the kinds that can change a sum.
  private static func change(_ random: inout SplitMix64) -> String {
    let member = "Member/\(Int.random(in: 0..<30, using: &random))"
    return switch Int.random(in: 0..<4, using: &random) {
    case 0: "set \(member) team null"
    case 1: "set \(member) team \"Team/0\""
    default: "set \(member) points \(Int.random(in: 0..<100, using: &random))"
    }
  }

  /// Commits an operation while collections are followed that no observation depends on yet.
  private static func commit(_ line: String, to fixture: inout Fixture) throws {
    let commit = try fixture.model.commit(Transaction([try operation(line)]))
    fixture.index.notify(CollectionOfOne(commit), of: fixture.model.state) { _ in }
  }

  @Test("Commits meanwhile count, even while nothing is observed yet", arguments: [false, true])
  func commits(isObservedElsewhere: Bool) throws {
    for round in 0..<50 {
      var random = SplitMix64(seed: seed, part: UInt64(round))
      var fixture = try Fixture(Self.schema)
      _ = try fixture.apply(["create Team/0 {}", "create Team/1 {}"])
      _ = try fixture.apply((0..<30).map { "create Member/\($0) {\"team\":\"Team/\($0 % 2)\"}" })
      let observation = try fixture.observation("Team/0", "members.@sum.points")
      if isObservedElsewhere {
        let other = try fixture.observation("Member/1", "points")
        fixture.index.add([other], of: ObserverID(2), in: fixture.model.state)
      }
      var following = ObserverIndex.Following()
      while !fixture.index.follow([observation], &following, members: 4, in: fixture.model.state) {
        try Self.commit(Self.change(&random), to: &fixture)
      }
      for _ in 0..<5 { try Self.commit(Self.change(&random), to: &fixture) }
      fixture.index.add([observation], of: ObserverID(1), in: fixture.model.state)
      fixture.index.end(following)
      _ = try fixture.apply(["set Member/0 team \"Team/0\""])
      let old = observation.value(in: fixture.model.state)
      let told = try fixture.apply(["set Member/0 points 101"])[1]?.changes.first
      #expect(told?.old == old, "seed \(seed), round \(round)")
      #expect(told?.new == observation.value(in: fixture.model.state), "seed \(seed), round \(round)")
    }
  }
}
