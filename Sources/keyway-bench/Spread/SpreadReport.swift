import Foundation
import KeyValueModel

/// The figures of a benchmark of many streams that each observe something else.
struct SpreadReport: BenchmarkReport {
  /// Commits of one object each.
  struct Phase {
    var seconds = 0.0
    var commits = 0
    var deliveries = 0
    /// From when a commit was due to its response.
    var responses = Latency()
    /// From before the request to the delivery.
    var latency = Latency()
    /// What the server used.
    var cpuSeconds: Double?

    var cpuMicrosecondsPerCommit: Double? { cpuSeconds.map { $0 * 1e6 / Double(max(commits, 1)) } }
    private var commitsPerSecond: Double { Double(commits) / max(seconds, 1e-9) }

    var json: Value {
      var object: JSONObject = [
        "seconds": .rounded(seconds), "commits": .count(commits), "commitsPerSecond": .rounded(commitsPerSecond),
        "deliveries": .count(deliveries), "responseMicroseconds": .object(responses.json),
        "latencyMicroseconds": .object(latency.json),
      ]
      if let cpuMicrosecondsPerCommit { object["serverMicrosecondsPerCommit"] = .rounded(cpuMicrosecondsPerCommit) }
      return .object(object)
    }

    func text(_ name: String) -> String {
      var line = String(
        format: "%@: %.0f commits/s, %d deliveries; responses µs: p50 %d  p99 %d", name, commitsPerSecond, deliveries,
        Int(responses.p50), Int(responses.p99))
      if deliveries > 0 {
        line += "; deliveries µs: p50 \(latency.p50)  p90 \(latency.p90)  p99 \(latency.p99)  max \(latency.max)"
      }
      if let cpuMicrosecondsPerCommit {
        line += String(format: "; server: %.1f µs CPU/commit", cpuMicrosecondsPerCommit)
      }
      return line
    }
  }

  /// Transactions that concern many subscribers.
  struct Together {
    var subscribers = 0
    /// From each request to its last delivery.
    var milliseconds: [Double] = []
    /// What the server used for all of them.
    var cpuSeconds: Double?

    var cpuMicrosecondsPerDelivery: Double? {
      cpuSeconds.map { $0 * 1e6 / Double(max(subscribers * milliseconds.count, 1)) }
    }

    var json: Value {
      var object: JSONObject = [
        "subscribers": .count(subscribers), "milliseconds": .array(milliseconds.map { .rounded($0) }),
      ]
      if let cpuMicrosecondsPerDelivery {
        object["serverMicrosecondsPerDelivery"] = .rounded(cpuMicrosecondsPerDelivery)
      }
      return .object(object)
    }

    var text: String {
      let rounds = milliseconds.map { String(format: "%.1f", $0) }.joined(separator: ", ")
      var line = String(
        format: "one transaction, told to %d streams: median %.1f ms (%@)", subscribers, milliseconds.median ?? 0,
        rounds)
      if let cpuMicrosecondsPerDelivery {
        line += String(format: "; server: %.1f µs CPU/delivery", cpuMicrosecondsPerDelivery)
      }
      return line
    }
  }

  var subscribers = 0
  var objects = 0
  /// Without subscribers.
  var alone = Phase()
  /// With all of them.
  var observed = Phase()
  /// All at once.
  var together = Together()
  /// How many changes came in the place of others.
  var coalesced = 0
  /// How many subscribers missed anything, or got it twice or out of order.
  var faulty = 0
  var closed = 0

  /// What the server used more for a commit that is delivered than for one that is not.
  private var cpuMicrosecondsPerDelivery: Double? {
    guard let alone = alone.cpuMicrosecondsPerCommit, let all = observed.cpuMicrosecondsPerCommit else { return nil }
    return (all - alone) * Double(observed.commits) / Double(max(observed.deliveries, 1))
  }

  /// Whether no subscriber received anything wrong.
  var isFaultless: Bool { faulty == 0 && closed == 0 }

  var json: Value {
    var object: JSONObject = [
      "subscribers": .count(subscribers), "objects": .count(objects), "alone": alone.json, "observed": observed.json,
      "together": together.json, "coalesced": .count(coalesced), "faulty": .count(faulty), "closed": .count(closed),
    ]
    if let cpuMicrosecondsPerDelivery { object["serverMicrosecondsPerDelivery"] = .rounded(cpuMicrosecondsPerDelivery) }
    return .object(object)
  }

  var text: String {
    var lines = [
      "\(subscribers) subscribers, \(objects) objects",
      alone.text("not observed"), observed.text("observed"),
    ]
    if let cpuMicrosecondsPerDelivery {
      lines.append(String(format: "the difference: %.1f µs CPU/delivery", cpuMicrosecondsPerDelivery))
    }
    if !together.milliseconds.isEmpty { lines.append(together.text) }
    lines.append("coalesced \(coalesced)  missing, doubled or out of order \(faulty)  closed \(closed)")
    return lines.joined(separator: "\n")
  }
}
