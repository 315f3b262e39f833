import Histogram
import KeyValueModel

/// Percentiles of times, in microseconds.
struct Latency: Hashable, Sendable {
  var p50: Int64 = 0
  var p90: Int64 = 0
  var p99: Int64 = 0
  var max: Int64 = 0

  /// The histogram that `init(_:)` reads: up to ten minutes, to three digits.
  static func histogram() -> Histogram<UInt32> {
    Histogram(lowestDiscernibleValue: 1, highestTrackableValue: 600_000_000, numberOfSignificantValueDigits: .three)
  }

  /// Of nothing.
  init() {}

  /// The percentiles of what was recorded.
  init(_ histogram: Histogram<UInt32>) {
    guard histogram.totalCount > 0 else { return }
    p50 = Int64(histogram.valueAtPercentile(50))
    p90 = Int64(histogram.valueAtPercentile(90))
    p99 = Int64(histogram.valueAtPercentile(99))
    max = Int64(histogram.max)
  }

  /// All of them as a JSON object.
  var json: JSONObject {
    ["p50": .integer(p50), "p90": .integer(p90), "p99": .integer(p99), "max": .integer(max)]
  }
}
