import Histogram

/// When each subscriber has received the last of the messages that it missed.
final class Arrivals {
  private let targets: [UInt64]
  private var moments: [UInt64]
  /// How many have not yet.
  private(set) var missing: Int

  /// `last` are the messages that the objects were given last.
  init(_ options: BenchReconnectCommand, _ last: [UInt64]) {
    targets = (0..<options.subscribers).map { last[options.object(of: $0)] }
    moments = Array(repeating: 0, count: options.subscribers)
    missing = options.subscribers
  }

  /// Notes that messages came to a subscriber.
  func note(_ index: Int, _ numbers: [UInt64], _ now: UInt64) {
    guard moments[index] == 0, let last = numbers.last, last >= targets[index] else { return }
    moments[index] = now
    missing -= 1
  }

  /// How long it took those that have.
  func latency(since start: UInt64) -> Latency {
    var histogram = Latency.histogram()
    for moment in moments where moment > start { histogram.record((moment - start) / 1000) }
    return Latency(histogram)
  }
}
