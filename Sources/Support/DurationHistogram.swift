import Glibc
import Synchronization

/// A histogram of durations. Recording takes no lock and allocates nothing; any thread may record.
package final class DurationHistogram: Sendable {
  /// The durations recorded up to some moment.
  package struct Snapshot: Hashable, Sendable {
    /// For each of `bounds`, the number of durations that are at most as long, and last the number of all: each count
    /// includes those before it.
    package var cumulativeCounts: [UInt64]
    /// The sum of all durations, in nanoseconds.
    package var sum: UInt64

    /// The number of durations.
    package var count: UInt64 { cumulativeCounts.last ?? 0 }
  }

  /// The bounds of the buckets in nanoseconds, from 50 microseconds to 10 seconds.
  package static let bounds: [Int64] = [
    50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000, 10_000_000, 25_000_000, 50_000_000,
    100_000_000, 250_000_000, 500_000_000, 1_000_000_000, 2_500_000_000, 10_000_000_000,
  ]

  /// One count for each of the bounds, and one for longer durations.
  private let counts = InlineArray<17, Atomic<UInt64>> { _ in Atomic(0) }
  private let sum = Atomic<UInt64>(0)

  /// Creates a histogram without durations.
  package init() {}

  /// Records a duration in nanoseconds; a negative one counts as 0.
  package func record(nanoseconds: Int64) {
    let nanoseconds = max(0, nanoseconds)
    var index = 0
    while index < Self.bounds.count, nanoseconds > Self.bounds[index] { index += 1 }
    counts[index].wrappingAdd(1, ordering: .relaxed)
    sum.wrappingAdd(UInt64(nanoseconds), ordering: .relaxed)
  }

  /// The durations recorded so far. While others record, the sum may have one more or less than the counts.
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
