import Foundation
import KeyValueModel

/// The figures of a benchmark of a crowd that comes back.
struct ReconnectReport: BenchmarkReport {
  let subscribers: Int
  let objects: Int
  let behind: Int
  /// How many events all subscribers missed together.
  var missedEvents = 0
  /// How long the server took to end and to serve again; nil where it was not ended.
  var restartSeconds: Double?
  /// How long it took until all were answered.
  var openSeconds = 0.0
  /// How long it took until each had what it missed, in microseconds.
  var caughtUp = Latency()
  /// How many did not get it in time.
  var late = 0
  /// What was written before the cut.
  var before = Publishers.Outcome()
  /// What was written while all came back.
  var during = Publishers.Outcome()
  /// How many received every message of their object once and in order, before and after the cut.
  var exact = 0
  /// How many streams the server ended.
  var closed = 0

  /// No figures yet.
  init(_ options: BenchReconnectCommand) {
    subscribers = options.subscribers
    objects = options.objects
    behind = options.behind
  }

  /// The writers' 99th percentile while all came back, as a multiple of that before.
  var ratio: Double { Double(during.latency.p99) / Double(max(before.latency.p99, 1)) }

  /// Whether every subscriber received everything once and in order.
  var isFaultless: Bool { exact == subscribers && late == 0 && closed == 0 }

  var json: Value {
    var object: JSONObject = [
      "subscribers": .count(subscribers), "objects": .count(objects), "behind": .count(behind),
      "missedEvents": .count(missedEvents), "openSeconds": .number(openSeconds),
      "caughtUpMicroseconds": .object([
        "p50": .count(caughtUp.p50), "p99": .count(caughtUp.p99), "max": .count(caughtUp.max),
      ]),
      "late": .count(late), "writersBefore": Self.json(before), "writersDuring": Self.json(during),
      "p99Ratio": .number(ratio), "exact": .count(exact), "closed": .count(closed),
    ]
    if let restartSeconds { object["restartSeconds"] = .number(restartSeconds) }
    return .object(object)
  }

  private static func json(_ outcome: Publishers.Outcome) -> Value {
    .object([
      "writes": .count(outcome.writes), "p50Microseconds": .count(outcome.latency.p50),
      "p99Microseconds": .count(outcome.latency.p99), "maxMicroseconds": .count(outcome.latency.max),
    ])
  }

  var text: String {
    var lines: [String] = []
    if let restartSeconds { lines.append(String(format: "the server was back in %.2f s", restartSeconds)) }
    lines += [
      String(
        format: "%d subscribers of %d objects, %d revisions behind, missed %d events; all answered in %.2f s",
        subscribers, objects, behind, missedEvents, openSeconds),
      String(
        format: "caught up after: p50 %.3f s  p99 %.3f s  max %.3f s; late: %d", Double(caughtUp.p50) / 1e6,
        Double(caughtUp.p99) / 1e6, Double(caughtUp.max) / 1e6, late),
      Self.text("writers before", before), Self.text("writers meanwhile", during),
      String(format: "p99 of the writers: %.2f times", ratio),
      "told every message once and in order: \(exact) of \(subscribers); closed: \(closed)",
    ]
    return lines.joined(separator: "\n")
  }

  private static func text(_ name: String, _ outcome: Publishers.Outcome) -> String {
    "\(name): \(outcome.writes) writes; latency µs: p50 \(outcome.latency.p50)  p99 \(outcome.latency.p99)"
      + "  max \(outcome.latency.max)"
  }
}
