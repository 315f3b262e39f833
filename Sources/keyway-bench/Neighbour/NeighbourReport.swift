import Foundation
import KeyValueModel

/// What the others noticed of each attack.
struct NeighbourReport: BenchmarkReport {
  /// Some time, with or without the attack.
  struct Phase {
    var reads = BystanderClients.Outcome()
    var writes = BystanderClients.Outcome()
    var longestHealthGap = 0.0

    /// How many requests of the others failed.
    var failed: Int { reads.tally.failed + writes.tally.failed }

    var json: Value {
      .object([
        "reads": Self.json(reads), "writes": Self.json(writes), "healthGapMilliseconds": .rounded(longestHealthGap),
      ])
    }

    private static func json(_ outcome: BystanderClients.Outcome) -> Value {
      .object(["tally": outcome.tally.json, "microseconds": .object(outcome.latency.json)])
    }
  }

  /// One attack, on a server of its own.
  struct Row {
    var attack: String
    var summary: String
    var calm = Phase()
    var attacked = Phase()
    var neighbour = NeighbourTally()
    var largestResidentBytes = 0
    /// How many streams the others had, how many of them were closed, and how many of the rest do not show what GET
    /// shows.
    var listeners = 0
    var closedListeners = 0
    var wrongListeners = 0
    /// How the server ended; nil where it did not.
    var ending: String?
    /// The reason why the server did not start again with the same settings; nil if it did.
    var restartFailure: String?
    /// Why the attack could not be measured; nil where it could.
    var failure: String?
    /// What the resident bytes may be; nil where the program has no such bound.
    var residentLimit: Int?

    /// The 99th percentiles under attack, as multiples of those without.
    var readRatio: Double { Self.ratio(attacked.reads, calm.reads) }
    var writeRatio: Double { Self.ratio(attacked.writes, calm.writes) }

    private static func ratio(_ attacked: BystanderClients.Outcome, _ calm: BystanderClients.Outcome) -> Double {
      Double(attacked.latency.p99) / Double(max(calm.latency.p99, 1))
    }

    /// Whether the server lives, within its memory, and the others were served and told everything.
    var isFaultless: Bool {
      ending == nil && restartFailure == nil && failure == nil && attacked.failed == 0 && closedListeners == 0
        && wrongListeners == 0 && largestResidentBytes <= residentLimit ?? .max
    }

    var json: Value {
      var object: JSONObject = [
        "attack": .string(attack), "calm": calm.json, "attacked": attacked.json, "readP99Ratio": .rounded(readRatio),
        "writeP99Ratio": .rounded(writeRatio), "neighbour": neighbour.json,
        "largestResidentBytes": .count(largestResidentBytes), "listeners": .count(listeners),
        "closedListeners": .count(closedListeners), "wrongListeners": .count(wrongListeners),
        "isFaultless": .bool(isFaultless),
      ]
      if let ending { object["ending"] = .string(ending) }
      if let restartFailure { object["restartFailure"] = .string(restartFailure) }
      if let failure { object["failure"] = .string(failure) }
      return .object(object)
    }
  }

  /// For how long a write of the others may wait, in milliseconds: a maximum over it is marked.
  static let writeMilliseconds: Int64 = 250
  /// For how long `/healthz` may be silent, in milliseconds: what is over it is marked.
  static let healthMilliseconds = 100.0
  /// How many times the 99th percentile may be what it is without an attack: what is over it is marked.
  static let latencyRatio = 2.0

  let seed: UInt64
  let memoryBytes: Int?
  var rows: [Row] = []

  var isFaultless: Bool { rows.allSatisfy(\.isFaultless) }

  var json: Value {
    var object: JSONObject = ["seed": .string("\(seed)"), "attacks": .array(rows.map(\.json))]
    if let memoryBytes { object["memoryBytes"] = .count(memoryBytes) }
    return .object(object)
  }

  var text: String {
    let memory = memoryBytes.map { "memory.bytes \($0 >> 20) MiB" } ?? "no memory.bytes"
    let faulty = rows.filter { !$0.isFaultless }.map(\.attack)
    return
      (["seed \(seed), \(memory); '!' marks what is over its bound"] + rows.map(Self.text) + [
        faulty.isEmpty ? "no promise was broken" : "broken by: \(faulty.joined(separator: ", "))"
      ]).joined(separator: "\n")
  }

  /// The lines of one attack.
  static func text(_ row: Row) -> String {
    if let failure = row.failure { return "\(row.attack): not measured: \(failure)" }
    var lines = ["\(row.attack): \(row.summary)"]
    for (name, calm, attacked, ratio) in [
      ("reads", row.calm.reads, row.attacked.reads, row.readRatio),
      ("writes", row.calm.writes, row.attacked.writes, row.writeRatio),
    ] {
      lines.append(
        String(
          format: "  %@ µs: p50 %d -> %d  p99 %d -> %d (%.1f times%@)  failed: %d of %d", name, Int(calm.latency.p50),
          Int(attacked.latency.p50), Int(calm.latency.p99), Int(attacked.latency.p99), ratio,
          ratio > latencyRatio ? "!" : "", attacked.tally.failed, attacked.tally.failed + attacked.tally.answered))
    }
    lines.append(
      String(
        format: "  /healthz silent: %.0f -> %.0f ms%@; resident: %d MiB%@", row.calm.longestHealthGap,
        row.attacked.longestHealthGap, row.attacked.longestHealthGap > healthMilliseconds ? "!" : "",
        row.largestResidentBytes >> 20, row.largestResidentBytes > row.residentLimit ?? .max ? "!" : ""))
    let longest = row.attacked.writes.latency.max / 1_000
    let mark = longest > writeMilliseconds ? "!" : ""
    lines.append("  longest write: \(row.calm.writes.latency.max / 1_000) -> \(longest) ms\(mark)")
    let tally = row.neighbour
    lines.append(
      "  neighbour: \(tally.answered) answered, \(tally.refused) refused, \(tally.other) others, \(tally.cut) cut; "
        + "listeners: \(row.listeners), closed \(row.closedListeners), wrong \(row.wrongListeners)")
    if let ending = row.ending { lines.append("  ! the server ended: \(ending)") }
    if let failure = row.restartFailure { lines.append("  ! the server did not start again: \(failure)") }
    return lines.joined(separator: "\n")
  }
}
