import Histogram

/// Counts and times deliveries, without a copy for anybody who looks: it is written for every one of them.
final class DeliveryTally {
  /// How many there were.
  private(set) var delivered = 0
  private var histogram = FanoutLatency.histogram()
  private var ofSecond = FanoutLatency.histogram()
  private var secondEnd: UInt64 = 0
  private var p99OfSeconds: [Int64] = []

  /// How long they took.
  var latency: FanoutLatency { FanoutLatency(histogram) }

  /// The median of the 99th percentiles of each whole second: what a single bad second of a busy machine does not move.
  var typicalP99: Int64 {
    let sorted = p99OfSeconds.sorted()
    return sorted.isEmpty ? latency.p99 : sorted[sorted.count / 2]
  }

  /// Takes in the numbers of messages that came at one moment.
  func count(_ numbers: [UInt64], at now: UInt64) {
    if now >= secondEnd { beginSecond(at: now) }
    for number in numbers {
      histogram.record((now - number) / 1000)
      ofSecond.record((now - number) / 1000)
    }
    delivered += numbers.count
  }

  private func beginSecond(at now: UInt64) {
    if secondEnd > 0 { p99OfSeconds.append(FanoutLatency(ofSecond).p99) }
    ofSecond.reset()
    secondEnd = now + 1_000_000_000
  }
}
