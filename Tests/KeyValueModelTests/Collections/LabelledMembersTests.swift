import KeyValueModel
import TestKit
import Testing

/// The number of members that get new labels: the cost of insertions beyond their logarithmic minimum.
@Suite struct LabelledMembersTests {
  /// Inserts `count` members at the indexes that `place` returns. Returns the number of other members that got new
  /// labels.
  private func relabelled(_ count: Int, place: (Int) -> Int) -> Int {
    var members = LabelledMembers((0..<9).map { .integer(-1 - $0) })
    var relabelled = 0
    for number in 0..<count {
      relabelled += members.insert(.integer(Int64(number)), at: place(members.count))
    }
    #expect(members.count == count + 9)
    #expect(members.checkInvariants() == [], "seed \(seed)")
    return relabelled
  }

  @Test("inserting 100,000 times at index 1 gives few members new labels each time")
  func atIndexOne() {
    #expect(relabelled(100_000) { _ in 1 } < 100_000 * 10)
  }

  @Test("inserting 100,000 times before the last gives few members new labels each time")
  func beforeTheLast() {
    #expect(relabelled(100_000) { $0 - 1 } < 100_000 * 10)
  }

  @Test("inserting 100,000 times in the middle gives few members new labels each time")
  func inTheMiddle() {
    #expect(relabelled(100_000) { $0 / 2 } < 100_000 * 10)
  }

  @Test("inserting anywhere gives hardly a member a new label")
  func anywhere() {
    var random = SplitMix64(seed: seed)
    #expect(relabelled(20_000) { Int.random(in: 0...$0, using: &random) } < 1000, "seed \(seed)")
  }

  @Test("appending and prepending give no member a new label")
  func ends() {
    #expect(relabelled(10_000) { $0 } == 0)
    #expect(relabelled(10_000) { _ in 0 } == 0)
    var isFront = false
    #expect(
      relabelled(10_000) { count in
        isFront.toggle()
        return isFront ? 0 : count
      } == 0)
  }

  @Test("the order survives every spreading of labels")
  func order() {
    var members = LabelledMembers((0..<2).map { .integer(-1 - $0) })
    var oracle = Array(members.entries.map(\.member))
    for number in 0..<3000 {
      let place = number.isMultiple(of: 7) ? 2 : 1
      members.insert(.integer(Int64(number)), at: place)
      oracle.insert(.integer(Int64(number)), at: place)
      if number.isMultiple(of: 100) {
        #expect(members.entries.map(\.member) == oracle)
        #expect(members.checkInvariants() == [])
      }
    }
    for (place, member) in oracle.enumerated() { #expect(members.index(of: member) == place) }
  }

  @Test("a copy from before a spreading keeps its order")
  func copies() {
    var members = LabelledMembers((0..<20).map { .integer(-1 - $0) })
    var copies: [(LabelledMembers, [Value])] = []
    for number in 0..<500 {
      copies.append((members, members.entries.map(\.member)))
      members.insert(.integer(Int64(number)), at: 1)
    }
    for (copy, expected) in copies {
      #expect(copy.entries.map(\.member) == expected)
      #expect(copy.checkInvariants() == [])
    }
  }
}
