import Store
import TestKit
import Testing

@Suite("Work that is kept for the next")
struct BoundedCacheTests {
  @Test("A taken result has one owner, and a key has as many results as were put back")
  func taking() {
    var cache = BoundedCache<String, Int>(weightLimit: 10)
    cache.put(1, for: "a", at: 1, weight: 1)
    cache.put(2, for: "a", at: 1, weight: 1)
    #expect(cache.item(for: "a") == 2)
    #expect([cache.take("a"), cache.take("a"), cache.take("a")] == [2, 1, nil])
    #expect(cache.item(for: "b") == nil)
    #expect((cache.count, cache.weight) == (0, 0))
  }

  @Test("The oldest make room, and what alone is too heavy is not kept")
  func room() {
    var cache = BoundedCache<Int, Int>(weightLimit: 10)
    for number in 0..<8 { cache.put(number, for: number, at: 1, weight: 3) }
    #expect((0..<8).map { cache.item(for: $0) } == [nil, nil, nil, nil, nil, 5, 6, 7])
    cache.put(9, for: 9, at: 1, weight: 11)
    #expect(cache.item(for: 9) == nil)
    #expect((cache.count, cache.weight) == (3, 9))
  }

  @Test("Entries of too early a revision are dropped")
  func age() {
    var cache = BoundedCache<Int, Int>(weightLimit: 100)
    for number in 0..<10 { cache.put(number, for: number, at: UInt64(number), weight: 1) }
    cache.forget(before: 7)
    #expect((0..<10).filter { cache.item(for: $0) != nil } == [7, 8, 9])
  }

  @Test("After any puts and takes it stays within its weight, and returns only values that were put")
  func random() {
    var random = SplitMix64(seed: seed)
    var cache = BoundedCache<Int, (key: Int, weight: Int)>(weightLimit: 50)
    var revision: UInt64 = 0
    for _ in 0..<5000 {
      let key = Int.random(in: 0..<6, using: &random)
      switch Int.random(in: 0..<5, using: &random) {
      case 0, 1:
        let weight = Int.random(in: 0..<20, using: &random)
        cache.put((key, weight), for: key, at: revision, weight: weight)
      case 2, 3:
        let (count, weight) = (cache.count, cache.weight)
        guard let item = cache.take(key) else { continue }
        #expect(item.key == key, "seed \(seed)")
        #expect((cache.count, cache.weight) == (count - 1, weight - item.weight), "seed \(seed)")
      default:
        revision += 1
        if revision > 20 { cache.forget(before: revision - 20) }
      }
      #expect(cache.weight <= 50, "seed \(seed)")
      #expect(cache.count > 0 || cache.weight == 0, "seed \(seed)")
    }
  }
}
