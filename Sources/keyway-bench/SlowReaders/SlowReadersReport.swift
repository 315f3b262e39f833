import Foundation
import KeyValueModel

/// The figures of a benchmark with slow readers.
struct SlowReadersReport: BenchmarkReport {
  /// One phase.
  struct Phase {
    var seconds = 0.0
    var commits = 0
    /// To those that always read.
    var deliveries = 0
    /// Of those that always read.
    var latency = Latency()
    /// The median of the 99th percentiles of its seconds.
    var typicalP99: Int64 = 0
    /// What the server had in memory at the end.
    var residentBytes: Int?
    /// What the server used.
    var cpuSeconds: Double?

    private var commitsPerSecond: Double { Double(commits) / max(seconds, 1e-9) }
    private var deliveriesPerSecond: Double { Double(deliveries) / max(seconds, 1e-9) }

    var json: Value {
      var percentiles = latency.json
      percentiles["typicalP99"] = .count(typicalP99)
      var object: JSONObject = [
        "seconds": .number(seconds), "commitsPerSecond": .number(commitsPerSecond),
        "deliveriesPerSecond": .number(deliveriesPerSecond), "latencyMicroseconds": .object(percentiles),
      ]
      if let residentBytes { object["residentBytes"] = .count(residentBytes) }
      if let cpuSeconds { object["cpuSeconds"] = .number(cpuSeconds) }
      return .object(object)
    }

    func text(_ name: String) -> String {
      var line = String(
        format: "%@: %.0f commits/s, %.0f deliveries/s; latency µs: p50 %d  p90 %d  p99 %d (%d)  max %d", name,
        commitsPerSecond, deliveriesPerSecond, Int(latency.p50), Int(latency.p90), Int(latency.p99), Int(typicalP99),
        Int(latency.max))
      if let residentBytes, let cpuSeconds {
        line += String(
          format: "; server: %.1f MiB, %.0f %% CPU", Double(residentBytes) / 1_048_576, cpuSeconds / seconds * 100)
      }
      return line
    }
  }

  var subscribers = 0
  var slow = 0
  /// All read.
  var baseline = Phase()
  /// Some do not.
  var stop = Phase()
  /// They do again, and nothing is published any more.
  var catchUp = Phase()
  /// What waited in the server's process at the end of the stop.
  var pendingBytes = 0
  /// How many streams missed events at the end of the stop.
  var lagging = 0
  /// How many changes came to those that stopped in the place of others, and of how many others.
  var coalesced = 0
  var covered = 0
  /// How many of those that stopped show what GET shows.
  var present = 0
  /// How many of them received as many changes as there were, those that stand for others counted as what they stand
  /// for.
  var complete = 0
  /// How many of the others missed anything, or got it twice or out of order.
  var faulty = 0
  var closed = 0

  /// The 99th percentile while some did not read, as a multiple of that before.
  var ratio: Double { Double(stop.latency.p99) / Double(max(baseline.latency.p99, 1)) }

  /// The same of the median of the seconds: what other programs on the machine do shows less in it.
  var typicalRatio: Double { Double(stop.typicalP99) / Double(max(baseline.typicalP99, 1)) }

  /// Whether no subscriber received anything wrong.
  var isFaultless: Bool { present == slow && complete == slow && faulty == 0 && closed == 0 }

  var json: Value {
    .object([
      "subscribers": .count(subscribers), "slow": .count(slow), "baseline": baseline.json, "stop": stop.json,
      "catchUp": catchUp.json, "p99Ratio": .number(ratio), "typicalP99Ratio": .number(typicalRatio),
      "pendingBytes": .count(pendingBytes), "lagging": .count(lagging), "coalesced": .count(coalesced),
      "covered": .count(covered), "present": .count(present), "complete": .count(complete), "faulty": .count(faulty),
      "closed": .count(closed),
    ])
  }

  var text: String {
    [
      baseline.text("all read"), stop.text("\(slow) of \(subscribers) do not"), catchUp.text("they read again"),
      String(
        format: "p99 of the others: %.2f times; in parentheses the median of the seconds: %.2f times", ratio,
        typicalRatio),
      String(
        format: "at the end of the stop: %.1f MiB pending, %d streams lagging", Double(pendingBytes) / 1_048_576,
        lagging),
      "caught up in \(String(format: "%.2f", catchUp.seconds)) s: \(coalesced) changes in the place of \(covered)",
      "\(present) of \(slow) show what GET shows; \(complete) of \(slow) were told of every change",
      "of the others, missing, doubled or out of order: \(faulty); closed: \(closed)",
    ].joined(separator: "\n")
  }
}
