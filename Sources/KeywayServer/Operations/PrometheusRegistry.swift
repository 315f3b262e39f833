import HTTPTypes
import Support
import Synchronization

/// The metrics of the server, in the Prometheus text format, version 0.0.4.
///
/// The names of metrics and labels need no escaping, since they are fixed in the program. The values of labels do.
/// Frequent events are counted where they happen, without this lock, and a collector copies their counts.
package final class PrometheusRegistry: Sendable {
  /// The labels of one value, in output order.
  package typealias Labels = KeyValuePairs<String, String>

  private struct Family {
    /// The values, by their encoded labels.
    var values: [String: Double] = [:]
    /// The histograms, by their encoded labels.
    var histograms: [String: DurationHistogram.Snapshot] = [:]
  }

  private let families = Locked<[Metric: Family]>([:])
  private let collectors = Locked<[@Sendable (PrometheusRegistry) -> Void]>([])

  /// Creates a registry without values.
  package init() {}

  /// Increments a counter by one.
  func increment(_ counter: Metric, _ labels: Labels = [:]) {
    update(counter, labels) { family, key in family.values[key, default: 0] += 1 }
  }

  /// Sets a gauge, or sets a counter to a total that is counted elsewhere.
  package func set(_ metric: Metric, _ labels: Labels = [:], to value: Double) {
    update(metric, labels) { family, key in family.values[key] = value }
  }

  /// Sets a gauge or a counter to a whole number.
  func set(_ metric: Metric, _ labels: Labels = [:], to value: Int) { set(metric, labels, to: Double(value)) }

  /// Sets a histogram to the durations recorded elsewhere.
  func set(_ metric: Metric, _ labels: Labels = [:], to recorded: DurationHistogram) {
    let snapshot = recorded.snapshot
    update(metric, labels) { family, key in family.histograms[key] = snapshot }
  }

  private func update(_ metric: Metric, _ labels: Labels, _ change: (inout Family, String) -> Void) {
    assert(labels.map(\.key) == metric.labels, "the labels of \(metric.rawValue) are \(metric.labels)")
    let key = labels.map { "\($0.key)=\"\(Self.escaped($0.value))\"" }.joined(separator: ",")
    families.withLock { change(&$0[metric, default: Family()], key) }
  }

  private static func escaped(_ text: String) -> String {
    text.map { ["\\": "\\\\", "\"": "\\\"", "\n": "\\n"][$0] ?? String($0) }.joined()
  }

  /// Registers a collector to call before each rendering, which copies what is counted elsewhere.
  func collect(_ collector: @escaping @Sendable (PrometheusRegistry) -> Void) {
    collectors.withLock { $0.append(collector) }
  }

  /// Returns all families, in the order of their names.
  func rendered() -> [UInt8] {
    for collector in collectors.withLock({ $0 }) { collector(self) }
    var text = ""
    for (metric, family) in families.withLock({ $0 }).sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
      text += "# HELP \(metric.rawValue) \(metric.help)\n# TYPE \(metric.rawValue) \(metric.kind.rawValue)\n"
      for (labels, value) in family.values.sorted(by: { $0.key < $1.key }) {
        text += Self.line(metric.rawValue, labels, value)
      }
      for (labels, snapshot) in family.histograms.sorted(by: { $0.key < $1.key }) {
        text += Self.lines(metric.rawValue, labels, snapshot)
      }
    }
    return Array(text.utf8)
  }

  private static func lines(_ name: String, _ labels: String, _ snapshot: DurationHistogram.Snapshot) -> String {
    var text = ""
    let bounds = DurationHistogram.bounds.map { number(Double($0) / 1e9) } + ["+Inf"]
    for (bound, count) in zip(bounds, snapshot.cumulativeCounts) {
      let bounded = labels.isEmpty ? "le=\"\(bound)\"" : "\(labels),le=\"\(bound)\""
      text += line("\(name)_bucket", bounded, Double(count))
    }
    text += line("\(name)_sum", labels, Double(snapshot.sum) / 1e9)
    return text + line("\(name)_count", labels, Double(snapshot.count))
  }

  private static func line(_ name: String, _ labels: String, _ value: Double) -> String {
    labels.isEmpty ? "\(name) \(number(value))\n" : "\(name){\(labels)} \(number(value))\n"
  }

  private static func number(_ value: Double) -> String {
    value == value.rounded() && abs(value) < 1e15 ? String(Int64(value)) : "\(value)"
  }
}

/// Counts the requests of one route by method and class of status, and measures their durations, in tables of fixed
/// size. Nothing that a client sends becomes a label, and counting takes no lock.
final class RequestCounts: Sendable {
  private final class Count: Sendable {
    let value = Atomic<UInt64>(0)
  }

  private static let methods: [HTTPRequest.Method] = [.get, .put, .patch, .post, .delete, .head, .options]
  private static let statusClasses = 6

  private let route: String
  private let counts: [Count]
  /// The durations, by class of status.
  private let durations: [DurationHistogram]

  /// Creates the counts of the requests that metrics label with `route`.
  init(route: String) {
    self.route = route
    counts = (0..<(Self.methods.count + 1) * Self.statusClasses).map { _ in Count() }
    durations = (0..<Self.statusClasses).map { _ in DurationHistogram() }
  }

  /// Counts a response, and records the time since `watch` started.
  func count(_ method: HTTPRequest.Method, status: HTTPResponse.Status, after watch: Stopwatch) {
    let row = Self.methods.firstIndex(of: method) ?? Self.methods.count
    let statusClass = min(status.code / 100, 5)
    counts[row * Self.statusClasses + statusClass].value.wrappingAdd(1, ordering: .relaxed)
    durations[statusClass].record(nanoseconds: watch.nanoseconds)
  }

  /// Writes the counts and durations to a registry.
  func export(to registry: PrometheusRegistry) {
    for (index, count) in counts.enumerated() {
      let (row, status) = index.quotientAndRemainder(dividingBy: Self.statusClasses)
      let value = count.value.load(ordering: .relaxed)
      guard value > 0 else { continue }
      let method = row < Self.methods.count ? Self.methods[row].rawValue : "other"
      registry.set(.requests, ["method": method, "route": route, "status": "\(status)xx"], to: Double(value))
    }
    for (status, recorded) in durations.enumerated() where recorded.snapshot.count > 0 {
      registry.set(.requestDurations, ["route": route, "status": "\(status)xx"], to: recorded)
    }
  }
}
