import TestKit
import Testing

@testable import KeyValueObserving

@Suite struct LongestIncreasingRunTests {
  @Test("it increases, and no other that does is longer")
  func bruteForce() {
    var random = SplitMix64(seed: seed)
    for _ in 0..<400 {
      let count = Int.random(in: 0...9, using: &random)
      // Often with equal numbers.
      let numbers = (0..<count).map { _ in Int.random(in: 0..<12, using: &random) }
      let run = LongestIncreasingRun.positions(of: numbers)
      #expect(zip(run, run.dropFirst()).allSatisfy { $0 < $1 && numbers[$0] < numbers[$1] }, "\(numbers): \(run)")
      #expect(run.count == longest(numbers), "KEYWAY_TEST_SEED=\(seed), \(numbers): \(run)")
    }
  }

  @Test("of one length it is always the same")
  func stable() {
    #expect(LongestIncreasingRun.positions(of: []) == [])
    #expect(LongestIncreasingRun.positions(of: [3, 2, 1]).count == 1)
    #expect(LongestIncreasingRun.positions(of: [1, 2, 3]) == [0, 1, 2])
    #expect(LongestIncreasingRun.positions(of: [4, 1, 2, 0, 3]) == [1, 2, 4])
  }

  /// Tries every subset.
  private func longest(_ numbers: [Int]) -> Int {
    var best = 0
    for subset in 0..<(1 << numbers.count) {
      let chosen = numbers.indices.filter { subset >> $0 & 1 == 1 }.map { numbers[$0] }
      if zip(chosen, chosen.dropFirst()).allSatisfy(<) { best = max(best, chosen.count) }
    }
    return best
  }
}
