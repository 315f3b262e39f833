import Support
import TestKit
import Testing

@Suite("Histograms of durations")
struct DurationHistogramTests {
  @Test("Each bucket counts what is at most as long as its bound", arguments: 1...20)
  func buckets(round: UInt64) {
    var random = SplitMix64(seed: seed &+ round)
    let histogram = DurationHistogram()
    var recorded: [Int64] = []
    for _ in 0..<Int.random(in: 0...300, using: &random) {
      let bound = DurationHistogram.bounds.randomElement(using: &random) ?? 0
      let nanoseconds = [bound, bound - 1, bound + 1, .random(in: -5...20_000_000_000, using: &random)]
        .randomElement(using: &random)
      recorded.append(nanoseconds ?? 0)
      histogram.record(nanoseconds: recorded.last ?? 0)
    }
    let snapshot = histogram.snapshot
    let expected = (DurationHistogram.bounds + [.max]).map { bound in
      UInt64(recorded.count { $0 <= bound })
    }
    #expect(snapshot.cumulativeCounts == expected, "seed \(seed)")
    #expect(snapshot.sum == UInt64(recorded.reduce(0) { $0 + max(0, $1) }))
    #expect(snapshot.count == UInt64(recorded.count))
  }

  @Test("Concurrent records of several threads are all counted")
  func threads() async {
    let histogram = DurationHistogram()
    await withTaskGroup(of: Void.self) { group in
      for task in 0..<4 {
        group.addTask { for _ in 0..<10_000 { histogram.record(nanoseconds: Int64(task) * 1_000_000) } }
      }
    }
    #expect(histogram.snapshot.count == 40_000)
    #expect(histogram.snapshot.sum == 60_000_000_000)
  }

  @Test("A stopwatch never goes back")
  func stopwatch() {
    let watch = Stopwatch()
    var last: Int64 = 0
    for _ in 0..<1_000 {
      let now = watch.nanoseconds
      #expect(now >= last)
      last = now
    }
  }
}
