import KeyValueModel
import TestKit
import Testing

private enum Ascending: RankedOrder {
  typealias Element = Int
  static func precedes(_ left: Int, _ right: Int) -> Bool { left < right }
}

@Suite struct RankedTreeSharingTests {
  @Test("a copy that changed in k places is told by about k nodes, among them all that differs", arguments: [1, 3, 20])
  func changes(count: Int) {
    var random = SplitMix64(seed: seed &+ UInt64(count))
    for size in [0, 5, 30, 700, 20_000] {
      let old = RankedTree<Ascending>(sorted: Array(stride(from: 0, to: size * 2, by: 2)))
      var new = old
      for _ in 0..<count {
        let value = Int.random(in: 0..<max(1, size * 2), using: &random)
        if new.contains(value) { new.remove(value) } else { new.insert(value) }
      }
      let (left, right) = RankedTree<Ascending>.unshared(old, new)
      let label = Comment(rawValue: "KEYWAY_TEST_SEED=\(seed), \(size) elements, \(count) changes")
      #expect(Set(left).isSuperset(of: Set(old).subtracting(new)), label)
      #expect(Set(right).isSuperset(of: Set(new).subtracting(old)), label)
      #expect(left == left.sorted() && right == right.sorted(), label)
      // Two nodes of 24 for each change: its own, and a neighbour that it was merged with.
      #expect(left.count <= count * 48 && right.count <= count * 48, label)
    }
  }

  @Test("copies that have not changed share everything, strangers nothing")
  func extremes() {
    let tree = RankedTree<Ascending>(sorted: Array(0..<1000))
    let stranger = RankedTree<Ascending>(sorted: Array(500..<900))
    let same = RankedTree<Ascending>.unshared(tree, tree)
    #expect(same.left.isEmpty && same.right.isEmpty)
    let both = RankedTree<Ascending>.unshared(tree, stranger)
    #expect(both.left == Array(0..<1000) && both.right == Array(500..<900))
    let none = RankedTree<Ascending>.unshared(RankedTree(), tree)
    #expect(none.left.isEmpty && none.right.count == 1000)
  }

  @Test("one that was changed many times and put back is told by what was touched")
  func longHistory() {
    var random = SplitMix64(seed: seed)
    let old = RankedTree<Ascending>(sorted: Array(0..<5000))
    var new = old
    for _ in 0..<300 {
      let value = Int.random(in: 0..<5000, using: &random)
      new.remove(value)
      if Int.random(in: 0..<3, using: &random) > 0 { new.insert(value) }
    }
    let (left, right) = RankedTree<Ascending>.unshared(old, new)
    #expect(Set(left).isSuperset(of: Set(old).subtracting(new)))
    #expect(Set(right).isSuperset(of: Set(new).subtracting(old)))
    #expect(new.checkInvariants() == [])
  }
}
