import Glibc
import Synchronization

/// How often something took how long. Recording takes no lock and allocates nothing; any thread.
package final class DurationHistogram: Sendable {
  /// What was recorded up to some moment.
  package struct Snapshot: Hashable, Sendable {
    /// How many were at most as long as each of `bounds`, and as long as anything: each counts those before it too.
    package var cumulativeCounts: [UInt64]
    /// All of them together, in nanoseconds.
    package var sum: UInt64

    /// How many there were.
    package var count: UInt64 { cumulativeCounts.last ?? 0 }
  }

  /// The bounds of the buckets in nanoseconds, from 50 microseconds to 10 seconds.
  package static let bounds: [Int64] = [
    50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000, 10_000_000, 25_000_000, 50_000_000,
    100_000_000, 250_000_000, 500_000_000, 1_000_000_000, 2_500_000_000, 10_000_000_000,
  ]

  /// One for each of the bounds, and one for what is longer.
  private let counts = InlineArray<17, Atomic<UInt64>> { _ in Atomic(0) }
  private let sum = Atomic<UInt64>(0)

  /// Without anything recorded.
  package init() {}

  /// Records something that took so many nanoseconds; less than none counts as none.
  package func record(nanoseconds: Int64) {
    let nanoseconds = max(0, nanoseconds)
    var index = 0
    while index < Self.bounds.count, nanoseconds > Self.bounds[index] { index += 1 }
    counts[index].wrappingAdd(1, ordering: .relaxed)
    sum.wrappingAdd(UInt64(nanoseconds), ordering: .relaxed)
  }

  /// What was recorded so far. While others record, the sum may have one more or less than the counts.
  package var snapshot: Snapshot {
    var total: UInt64 = 0
    var cumulative: [UInt64] = []
    cumulative.reserveCapacity(counts.count)
    for index in counts.indices {
      total += counts[index].load(ordering: .relaxed)
      cumulative.append(total)
    }
    return Snapshot(cumulativeCounts: cumulative, sum: sum.load(ordering: .relaxed))
  }
}
