import KeyValueModel
import TestKit
import Testing

@testable import KeyValueObserving

@Suite("Sets by keys of objects")
struct KeyedSetsTests {
  @Test("Has what a dictionary of sets has after the same changes, however it grows and shrinks")
  func oracle() throws {
    var random = SplitMix64(seed: seed)
    let keys = try (0..<400).map { number in
      ObservedKey(object: try #require(Reference("Note/\(number / 2)")), key: number % 2 - 1)
    }
    var sets = KeyedSets<Int>()
    var oracle: [ObservedKey: Set<Int>] = [:]
    // Few keys, then many, then fewer until there is none.
    for step in 0..<20_000 {
      let isGrowing = (step / 4_000).isMultiple(of: 2)
      let key = keys[Int.random(in: 0..<(isGrowing ? 400 : 100), using: &random)]
      let element = Int.random(in: 0..<3, using: &random)
      if Int.random(in: 0..<4, using: &random) < (isGrowing ? 3 : 1) {
        sets.insert(element, for: key)
        oracle[key, default: []].insert(element)
      } else {
        let isThere = oracle[key] != nil
        oracle[key]?.remove(element)
        if oracle[key]?.isEmpty == true { oracle[key] = nil }
        #expect(sets.remove(element, from: key) == (isThere && oracle[key] == nil), "seed \(seed)")
      }
      #expect(Set(sets[key]) == oracle[key] ?? [], "seed \(seed)")
    }
    for key in keys {
      #expect(Set(sets[key]) == oracle[key] ?? [] && sets.contains(key) == (oracle[key] != nil), "seed \(seed)")
    }
    #expect(sets.pairCount == oracle.values.reduce(0) { $0 + $1.count }, "seed \(seed)")
    for (key, elements) in oracle {
      for element in elements { sets.remove(element, from: key) }
      #expect(!sets.contains(key) && sets[key].isEmpty, "seed \(seed)")
    }
    #expect(sets.isEmpty && sets.pairCount == 0)
  }
}
