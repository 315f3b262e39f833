import TestKit
import Testing

@Suite("Merged changes of random traffic")
struct CoalescingTests {
  @Test(
    "A run of commits told at once makes of the value before what the commits made of it one by one",
    arguments: [["always"], ["always", "changed"], ["always", "changed", "manual"]])
  func composition(modes: [String]) throws {
    var kinds: [String: Int] = [:]
    for round in 0..<8 {
      let raceSeed = seed &+ UInt64(round) &* 1_000_003 &+ UInt64(modes.count) << 32
      var race = try CoalescingRace(seed: raceSeed, modes: modes)
      do {
        for _ in 0..<40 { try race.run() }
      } catch let difference as Difference {
        Issue.record(
          """
          KEYWAY_TEST_SEED=\(seed), round \(round): \(difference.text)
          \(race.schema.yaml)
          \(race.trail.joined(separator: "\n"))
          """)
        return
      }
      kinds.merge(race.kinds, uniquingKeysWith: +)
    }
    // It would be easy to agree on settings only.
    #expect(kinds.count == 4, "KEYWAY_TEST_SEED=\(seed): \(kinds)")
  }
}
