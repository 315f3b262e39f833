import Foundation
import KeyValueModel

/// The figures of a benchmark of a crowd that comes back.
struct ReconnectReport: Hashable, Sendable {
  let subscribers: Int
  let objects: Int
  let behind: Int
  /// How many events all subscribers missed together.
  var missedEvents = 0
  /// How long the server took to end and to serve again; nil where it was not ended.
  var restartSeconds: Double?
  /// How long it took until everybody was answered.
  var openSeconds = 0.0
  /// How long it took until each had what he missed, in microseconds.
  var caughtUp = FanoutLatency()
  /// How many did not get it in time.
  var late = 0
  /// Those who wrote before the cut.
  var before = SteadyWriters.Outcome()
  /// Those who wrote while everybody came back.
  var during = SteadyWriters.Outcome()
  /// How many were told every message of their object once and in order, before and after the cut.
  var exact = 0
  /// How many streams the server ended.
  var closed = 0

  /// No figures yet.
  init(_ plan: ReconnectPlan) {
    subscribers = plan.subscribers
    objects = plan.objects
    behind = plan.behind
  }

  /// The writers' 99th percentile while everybody came back, as a multiple of that before.
  var ratio: Double { Double(during.latency.p99) / Double(max(before.latency.p99, 1)) }

  /// Whether everybody was told everything once and in order.
  var isFaultless: Bool { exact == subscribers && late == 0 && closed == 0 }

  /// The figures as one JSON object.
  var json: String {
    var object: JSONObject = [
      "subscribers": .integer(Int64(subscribers)), "objects": .integer(Int64(objects)),
      "behind": .integer(Int64(behind)), "missedEvents": .integer(Int64(missedEvents)),
      "openSeconds": .number(openSeconds),
      "caughtUpMicroseconds": .object([
        "p50": .integer(caughtUp.p50), "p99": .integer(caughtUp.p99), "max": .integer(caughtUp.max),
      ]),
      "late": .integer(Int64(late)), "writersBefore": Self.json(before), "writersDuring": Self.json(during),
      "p99Ratio": .number(ratio), "exact": .integer(Int64(exact)), "closed": .integer(Int64(closed)),
    ]
    if let restartSeconds { object["restartSeconds"] = .number(restartSeconds) }
    return Value.object(object).json
  }

  private static func json(_ outcome: SteadyWriters.Outcome) -> Value {
    .object([
      "writes": .integer(Int64(outcome.writes)), "p50Microseconds": .integer(outcome.latency.p50),
      "p99Microseconds": .integer(outcome.latency.p99), "maxMicroseconds": .integer(outcome.latency.max),
    ])
  }

  /// The figures for a person.
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

  private static func text(_ name: String, _ outcome: SteadyWriters.Outcome) -> String {
    "\(name): \(outcome.writes) writes; latency µs: p50 \(outcome.latency.p50)  p99 \(outcome.latency.p99)"
      + "  max \(outcome.latency.max)"
  }
}
