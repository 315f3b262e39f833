import Histogram

/// Counts and times deliveries. A class, so that a look at it copies nothing: it is written for every delivery.
final class DeliveryTally {
  /// How many there were.
  private(set) var delivered = 0
  private var histogram = Latency.histogram()
  private var ofSecond = Latency.histogram()
  private var secondEnd: UInt64 = 0
  private var p99OfSeconds: [Int64] = []

  /// How long they took.
  var latency: Latency { Latency(histogram) }

  /// The median of the 99th percentiles of each whole second: what a single bad second of a busy machine does not move.
  var typicalP99: Int64 { p99OfSeconds.median ?? latency.p99 }

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
    if secondEnd > 0 { p99OfSeconds.append(Latency(ofSecond).p99) }
    ofSecond.reset()
    secondEnd = now + 1_000_000_000
  }
}
