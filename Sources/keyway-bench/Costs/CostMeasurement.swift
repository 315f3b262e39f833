import KeyValueModel
import TestKit

/// How `bench model` and `bench queries` measure.
enum CostMeasurement {
  /// The best of so many rounds, at least two.
  static func best(of rounds: Int, _ measure: () throws -> Double) throws -> Double {
    var best = try measure()
    for _ in 1..<max(rounds, 2) { best = min(best, try measure()) }
    return best
  }

  /// Nanoseconds for each of so many changes. `change` gives how many notifications came of one change; throws where
  /// they are not as many as wanted altogether, since then the figure means nothing.
  static func nanoseconds(
    each changes: Int, notifications wanted: Int, _ change: (Int) throws -> Int
  ) throws -> Double {
    var heard = 0
    let start = MonotonicClock.now()
    for number in 0..<changes { heard += try change(number) }
    let elapsed = MonotonicClock.now() - start
    guard heard == wanted else { throw LoopbackError("there were \(heard) notifications instead of \(wanted)") }
    return Double(elapsed) / Double(changes)
  }

  /// Transactions of at most 10,000 operations that make so many objects.
  static func creations(of count: Int, _ creation: (Int) -> Operation) -> [Transaction] {
    stride(from: 0, to: count, by: 10_000).map { start in
      Transaction((start..<min(start + 10_000, count)).map(creation))
    }
  }
}
