import Foundation
import KeyValueModel

/// The figures of a benchmark of durable writes, round by round.
struct DurableReport: BenchmarkReport {
  /// One measurement.
  struct Load: Hashable, Sendable {
    var perSecond = 0.0
    var latency = Latency()
    var cores = CPUTimes.Cores()
  }

  /// The measured server, and the number of connections.
  struct Subject: Hashable, Sendable {
    var peer: WritePeer.Kind
    var connections: Int
  }

  /// The measurements of one round, in order.
  struct Round: Hashable, Sendable {
    var disk = DiskProbe()
    var writes: [Subject: Load] = [:]
    /// The reads of Keyway while nothing is written.
    var readsAlone: Load?
    /// The reads of Keyway while others write, and those writes.
    var readsWhileWriting: Load?
    var writesWhileReading: Load?

    /// Returns Keyway's writes as a multiple of those of another server; nil if one of them was not measured.
    func ratio(to peer: WritePeer.Kind, connections: Int) -> Double? {
      guard let ours = writes[Subject(peer: .keyway, connections: connections)],
        let theirs = writes[Subject(peer: peer, connections: connections)], theirs.perSecond > 0
      else { return nil }
      return ours.perSecond / theirs.perSecond
    }

    /// The reads while others write, as a fraction of those while nothing is written; nil if not measured.
    var readRatio: Double? {
      guard let readsAlone, let readsWhileWriting, readsAlone.perSecond > 0 else { return nil }
      return readsWhileWriting.perSecond / readsAlone.perSecond
    }
  }

  var connections = 0
  var readers = 0
  var writers = 0
  /// The servers that are not installed.
  var skipped: [String] = []
  var rounds: [Round] = []
}

// MARK: Sections, the same as text and as JSON

extension DurableReport {
  /// A quantity that was measured once in each round.
  struct Series: Hashable, Sendable {
    /// The title in the text.
    var title: String
    /// Its name in the JSON object.
    var name: String
    var loads: [Load]

    func median<Number: Comparable>(_ figure: (Load) -> Number) -> Number? { loads.map(figure).median }
  }

  /// A ratio of each round.
  struct Ratios: Hashable, Sendable {
    var title: String
    var name: String
    var values: [Double]
  }

  /// The measurements, without those that were not made.
  var series: [Series] {
    var result: [Series] = []
    for count in connectionCounts {
      for peer in WritePeer.Kind.allCases {
        let loads = rounds.compactMap { $0.writes[Subject(peer: peer, connections: count)] }
        result.append(Series(title: "\(peer), \(Self.words(count))", name: "\(peer)Writes\(count)", loads: loads))
      }
    }
    result.append(
      Series(title: "GET, \(Self.words(readers))", name: "reads", loads: rounds.compactMap(\.readsAlone)))
    result.append(
      Series(
        title: "GET, \(Self.words(readers)), while \(writers) write", name: "readsWhileWriting",
        loads: rounds.compactMap(\.readsWhileWriting)))
    result.append(
      Series(
        title: "those writes", name: "writesWhileReading", loads: rounds.compactMap(\.writesWhileReading)))
    return result.filter { !$0.loads.isEmpty }
  }

  /// The ratios, without those that are not known.
  var ratios: [Ratios] {
    var result: [Ratios] = []
    for count in connectionCounts {
      for peer in WritePeer.Kind.allCases where peer != .keyway {
        result.append(
          Ratios(
            title: "keyway / \(peer), \(Self.words(count))", name: "\(peer)Ratio\(count)",
            values: rounds.compactMap { $0.ratio(to: peer, connections: count) }))
      }
    }
    result.append(
      Ratios(title: "GET while writing / GET", name: "readRatio", values: rounds.compactMap(\.readRatio)))
    return result.filter { !$0.values.isEmpty }
  }

  private var connectionCounts: [Int] { Set([connections, 1]).sorted(by: >) }

  private static func words(_ connections: Int) -> String {
    connections == 1 ? "1 connection" : "\(connections) connections"
  }
}

// MARK: Text and JSON

extension DurableReport {
  /// The median and all rounds of everything.
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

  /// The medians, and all rounds in parentheses.
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
