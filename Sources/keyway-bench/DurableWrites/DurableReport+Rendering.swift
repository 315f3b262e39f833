import Foundation
import KeyValueModel

extension DurableReport {
  /// Of everything the median and all rounds.
  var json: Value {
    var object: JSONObject = [
      "disk": .object([
        "appendMicroseconds": Self.percentiles(rounds.map(\.disk.append)),
        "overwriteMicroseconds": Self.percentiles(rounds.map(\.disk.overwrite)),
      ]),
      "skipped": .array(skipped.map { .string($0) }),
    ]
    for series in series {
      object[series.name] = .object([
        "perSecond": Self.figures(series.loads.map(\.perSecond)),
        "latencyMicroseconds": Self.percentiles(series.loads.map(\.latency)),
        "serverCores": Self.figures(series.loads.map(\.cores.servers)),
        "generatorCores": Self.figures(series.loads.map(\.cores.generator)),
        "otherCores": Self.figures(series.loads.map(\.cores.others)),
      ])
    }
    for ratios in ratios { object[ratios.name] = Self.figures(ratios.values) }
    return .object(object)
  }

  /// Medians, and all rounds in parentheses.
  var text: String {
    var lines = [
      "disk, \(DiskProbe.blockBytes) bytes and fdatasync, µs: append \(Self.text(rounds.map(\.disk.append))), "
        + "overwrite \(Self.text(rounds.map(\.disk.overwrite)))"
    ]
    for name in skipped { lines.append("\(name): not installed, skipped") }
    for series in series { lines.append(Self.text(series)) }
    for ratios in ratios {
      let all = ratios.values.map { String(format: "%.2f", $0) }.joined(separator: " ")
      lines.append(String(format: "%@: %.2f (%@)", ratios.title, ratios.values.median ?? 0, all))
    }
    return lines.joined(separator: "\n")
  }

  private static func text(_ series: Series) -> String {
    let all = series.loads.map { String(format: "%.0f", $0.perSecond) }.joined(separator: " ")
    return String(
      format: "%@: %.0f/s (%@); µs: p50 %d  p99 %d; cores: servers %.2f, generator %.2f, others %.2f",
      series.title, series.median(\.perSecond) ?? 0, all, Int(series.median(\.latency.p50) ?? 0),
      Int(series.median(\.latency.p99) ?? 0), series.median(\.cores.servers) ?? 0,
      series.median(\.cores.generator) ?? 0, series.median(\.cores.others) ?? 0)
  }

  private static func text(_ latencies: [Latency]) -> String {
    "p50 \(latencies.map(\.p50).median ?? 0)  p99 \(latencies.map(\.p99).median ?? 0)"
  }

  private static func percentiles(_ latencies: [Latency]) -> Value {
    .object([
      "p50": .integer(latencies.map(\.p50).median ?? 0), "p99": .integer(latencies.map(\.p99).median ?? 0),
      "rounds": .array(latencies.map { .object(["p50": .integer($0.p50), "p99": .integer($0.p99)]) }),
    ])
  }

  private static func figures(_ numbers: [Double]) -> Value {
    .object(["median": .rounded(numbers.median ?? 0), "rounds": .array(numbers.map { .rounded($0) })])
  }
}
