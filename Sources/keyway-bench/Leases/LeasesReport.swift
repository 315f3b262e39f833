import Foundation
import KeyValueModel

/// The figures of a benchmark of objects that end by themselves.
struct LeasesReport: BenchmarkReport {
  /// What other writers saw for a while.
  struct Phase {
    let name: String
    var writes = 0
    /// From when a write was due to its response.
    var latency = Latency()
    /// How many leases were renewed meanwhile.
    var renewals = 0
    /// What the server used, a second.
    var cores: Double?

    var json: Value {
      var object: JSONObject = [
        "name": .string(name), "writes": .count(writes), "latencyMicroseconds": .object(latency.json),
        "renewals": .count(renewals),
      ]
      if let cores { object["serverCores"] = .rounded(cores) }
      return .object(object)
    }

    var text: String {
      var line = "\(name): \(writes) writes; µs: p50 \(latency.p50)  p90 \(latency.p90)  p99 \(latency.p99)"
      line += "  max \(latency.max)"
      if renewals > 0 { line += "; \(renewals) leases renewed" }
      if let cores { line += String(format: "; server: %.2f cores", cores) }
      return line
    }
  }

  var leases = 0
  /// How long it took to make the objects.
  var makingSeconds = 0.0
  var phases: [Phase] = []
  /// How many leases should have ended, and how many did.
  var due = 0
  var ended = 0
  /// The server's memory with all of them.
  var residentBytes: Int?

  /// The p99 of a phase's writers as a multiple of what it was alone.
  private func ratio(_ phase: Phase) -> Double {
    Double(phase.latency.p99) / Double(max(phases.first?.latency.p99 ?? 0, 1))
  }

  /// Whether just those leases ended that should have.
  var isFaultless: Bool { ended == due }

  var json: Value {
    var object: JSONObject = [
      "leases": .count(leases), "makingSeconds": .rounded(makingSeconds), "phases": .array(phases.map(\.json)),
      "p99Ratios": .array(phases.map { .rounded(ratio($0)) }), "due": .count(due), "ended": .count(ended),
    ]
    if let residentBytes { object["residentBytes"] = .count(residentBytes) }
    return .object(object)
  }

  var text: String {
    var lines = phases.map(\.text)
    var made = String(format: "%d leases, made in %.1f s", leases, makingSeconds)
    if let residentBytes { made += String(format: "; server: %.0f MiB", Double(residentBytes) / 1_048_576) }
    lines.insert(made, at: min(1, lines.count))
    for phase in phases.dropFirst() {
      lines.append(String(format: "p99 of the writers, %@: %.2f times", phase.name, ratio(phase)))
    }
    lines.append("ended \(ended) of \(due)")
    return lines.joined(separator: "\n")
  }
}
