import TestKit
import Testing

@testable import KeyValueObserving

@Suite("Small sets")
struct SmallSetTests {
  @Test("They have what a set has after the same changes, and one element in place")
  func oracle() {
    var random = SplitMix64(seed: seed)
    var small = SmallSet<Int>()
    var set: Set<Int> = []
    for _ in 0..<2000 {
      let element = Int.random(in: 0..<4, using: &random)
      if Bool.random(using: &random) {
        #expect(small.insert(element) == set.insert(element).inserted, "seed \(seed)")
      } else {
        small.remove(element)
        set.remove(element)
      }
      #expect(Set(small) == set && small.count == set.count && small.isEmpty == set.isEmpty, "seed \(seed)")
      #expect((0..<4).allSatisfy { small.contains($0) == set.contains($0) }, "seed \(seed)")
      #expect(small.only == (set.count == 1 ? set.first : nil), "seed \(seed)")
    }
  }
}
