import KeyValueModel
import TestKit
import Testing

/// Numbers, which are their own keys.
private enum Ascending: RankedOrder {
  typealias Element = Int
  static func precedes(_ left: Int, _ right: Int) -> Bool { left < right }
}

/// Names ordered only by their length: a key that is not the element.
private enum ByLength: RankedOrder {
  static func key(of element: String) -> Int { element.utf8.count }
  static func precedes(_ left: Int, _ right: Int) -> Bool { left > right }
}

@Suite struct RankedTreeTests {
  @Test("an empty tree has nothing to find")
  func empty() {
    let tree = RankedTree<Ascending>()
    #expect(tree.isEmpty)
    #expect(tree.first == nil)
    #expect(tree.last == nil)
    #expect(tree.rank(of: 1) == nil)
    #expect(tree.lowerBound(of: 1) == 0)
    #expect(tree.element(for: 1) == nil)
    #expect(Array(tree) == [])
    #expect(tree.checkInvariants() == [])
  }

  @Test("after any changes it is what a sorted array is", arguments: [30, 300, 3000])
  func random(values: Int) {
    var random = SplitMix64(seed: seed &+ UInt64(values))
    var tree = RankedTree<Ascending>()
    var oracle: [Int] = []
    for step in 0..<4000 {
      // Grows for a while, then shrinks, and again.
      let growing = (step / 1000).isMultiple(of: 2)
      let value = Int.random(in: 0..<values, using: &random)
      let rank = oracle.firstIndex { $0 >= value } ?? oracle.count
      let exists = rank < oracle.count && oracle[rank] == value
      #expect(tree.rank(of: value) == (exists ? rank : nil), "seed \(seed)")
      #expect(tree.lowerBound(of: value) == rank, "seed \(seed)")
      #expect(tree.upperBound(of: value) == (exists ? rank + 1 : rank), "seed \(seed)")
      switch Int.random(in: 0..<4, using: &random) {
      case 0 where !oracle.isEmpty:
        let place = Int.random(in: 0..<oracle.count, using: &random)
        #expect(tree.element(at: place) == oracle[place], "seed \(seed)")
        #expect(tree.remove(at: place) == oracle.remove(at: place), "seed \(seed)")
      case 1 where !growing, 2 where !growing:
        let removed = tree.remove(value)
        #expect(removed?.rank == (exists ? rank : nil), "seed \(seed)")
        #expect(removed?.element == (exists ? value : nil), "seed \(seed)")
        if exists { oracle.remove(at: rank) }
      default:
        #expect(tree.insert(value) == (exists ? nil : rank), "seed \(seed)")
        if !exists { oracle.insert(value, at: rank) }
      }
      if step.isMultiple(of: 50) {
        #expect(Array(tree) == oracle, "seed \(seed)")
        #expect(tree.checkInvariants() == [], "seed \(seed)")
      }
      #expect(tree.count == oracle.count)
      #expect(tree.first == oracle.first)
      #expect(tree.last == oracle.last)
    }
    while let last = oracle.popLast() { #expect(tree.remove(at: oracle.count) == last) }
    #expect(tree.isEmpty)
    #expect(tree.checkInvariants() == [])
  }

  @Test("ascending and descending insertions, and removals from either end, keep it in shape")
  func ends() {
    for isAscending in [true, false] {
      var tree = RankedTree<Ascending>()
      for step in 0..<2000 { tree.insert(isAscending ? step : -step) }
      #expect(tree.checkInvariants() == [])
      #expect(tree.count == 2000)
      for step in 0..<1990 {
        tree.remove(at: step.isMultiple(of: 3) ? 0 : tree.count - 1)
        if step.isMultiple(of: 100) { #expect(tree.checkInvariants() == []) }
      }
      #expect(tree.count == 10)
      #expect(tree.checkInvariants() == [])
    }
  }

  @Test("old copies stay what they were")
  func persistence() {
    var random = SplitMix64(seed: seed)
    var tree = RankedTree<Ascending>(sorted: (0..<500).map { $0 * 2 })
    var history: [(tree: RankedTree<Ascending>, elements: [Int])] = []
    for _ in 0..<400 {
      history.append((tree, Array(tree)))
      let value = Int.random(in: 0..<1000, using: &random)
      if tree.insert(value) == nil { tree.remove(value) }
    }
    for (tree, elements) in history {
      #expect(Array(tree) == elements, "seed \(seed)")
      #expect(tree.checkInvariants() == [], "seed \(seed)")
    }
  }

  @Test("a sorted sequence of any length becomes a tree")
  func building() {
    for count in Array(0..<130) + [431, 432, 433, 577, 10_000] {
      let tree = RankedTree<Ascending>(sorted: 0..<count)
      #expect(tree.checkInvariants() == [])
      #expect(tree.elementsEqual(0..<count))
    }
  }

  @Test("an iteration begins at any rank")
  func iteration() {
    let tree = RankedTree<Ascending>(sorted: 0..<1000)
    for rank in [0, 1, 17, 18, 19, 500, 999, 1000, 2000] {
      var iterator = tree.makeIterator(from: rank)
      var found: [Int] = []
      while let element = iterator.next() { found.append(element) }
      #expect(found == Array(Swift.min(rank, 1000)..<1000))
      #expect(iterator.next() == nil)
    }
    #expect(tree.indices.map { tree[$0] } == Array(0..<1000))
    #expect(tree.reversed().first == 999)
  }

  @Test("elements are ordered and found by a key of theirs")
  func keys() {
    var tree = RankedTree<ByLength>()
    #expect(tree.insert("aa") == 0)
    #expect(tree.insert("a") == 1)
    #expect(tree.insert("cccc") == 0)
    #expect(tree.insert("b") == nil)
    #expect(Array(tree) == ["cccc", "aa", "a"])
    #expect(tree.element(for: 1) == "a")
    #expect(tree.rank(of: 2) == 1)
    #expect(tree.remove(3) == nil)
    #expect(tree.remove(4)?.element == "cccc")
  }

  @Test("elements change in place, with their keys where the order stays")
  func updating() {
    var tree = RankedTree<Ascending>(sorted: (0..<1000).map { $0 * 10 })
    let old = tree
    tree.update(at: 0) { $0 = -5 }
    tree.update(17..<603) { rank, element in
      #expect(element == rank * 10)
      element += 3
    }
    tree.update(5..<5) { _, _ in Issue.record("nothing to change") }
    let expected = (0..<1000).map { $0 == 0 ? -5 : (17..<603).contains($0) ? $0 * 10 + 3 : $0 * 10 }
    #expect(Array(tree) == expected)
    #expect(tree.checkInvariants() == [])
    #expect(Array(old) == (0..<1000).map { $0 * 10 })
  }

  @Test("a copy is known until one of the two changes")
  func copies() {
    for count in [3, 1000] {
      let tree = RankedTree<Ascending>(sorted: 0..<count)
      var copy = tree
      #expect(tree.isCopy(of: copy))
      copy.insert(-1)
      #expect(!tree.isCopy(of: copy))
      copy.removeAll()
      #expect(copy.isEmpty)
      #expect(tree.count == count)
    }
  }
}
