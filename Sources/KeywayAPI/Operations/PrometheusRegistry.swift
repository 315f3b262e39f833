package import CoreMetrics
import Locking
import Synchronization

/// The backend of swift-metrics: keeps what was counted and writes it in the Prometheus text format, version 0.0.4.
///
/// Counters and gauges only, which is all that the server records. A label must be a Prometheus name; dimensions become labels.
package final class PrometheusRegistry: MetricsFactory {
  /// One number under one name and one set of labels.
  final class Series: CounterHandler, FloatingPointCounterHandler, MeterHandler, RecorderHandler, TimerHandler, Sendable
  {
    private let bits = Atomic<UInt64>(Double(0).bitPattern)

    var value: Double { Double(bitPattern: bits.load(ordering: .relaxed)) }

    func increment(by amount: Int64) { add(Double(amount)) }
    func increment(by amount: Double) { add(amount) }
    func decrement(by amount: Double) { add(-amount) }
    func reset() { set(Double(0)) }
    func set(_ value: Int64) { set(Double(value)) }
    func set(_ value: Double) { bits.store(value.bitPattern, ordering: .relaxed) }
    func record(_ value: Int64) { set(Double(value)) }
    func record(_ value: Double) { set(value) }
    func recordNanoseconds(_ duration: Int64) { add(Double(duration) / 1e9) }

    private func add(_ amount: Double) {
      var old = bits.load(ordering: .relaxed)
      while true {
        let new = (Double(bitPattern: old) + amount).bitPattern
        let result = bits.compareExchange(expected: old, desired: new, ordering: .relaxed)
        if result.exchanged { return }
        old = result.original
      }
    }
  }

  private struct Family {
    let type: String
    var series: [String: Series] = [:]
  }

  private let families = Locked<[String: Family]>([:])
  private let collectors = Locked<[@Sendable (PrometheusRegistry) -> Void]>([])

  /// A registry without series.
  package init() {}

  /// Has `collector` called before each rendering, to write down what is counted elsewhere.
  func collect(_ collector: @escaping @Sendable (PrometheusRegistry) -> Void) {
    collectors.withLock { $0.append(collector) }
  }

  /// Everything, one family after the other in the order of names.
  package func rendered() -> [UInt8] {
    for collector in collectors.withLock({ $0 }) { collector(self) }
    var text = ""
    let families = families.withLock { $0 }
    for (name, family) in families.sorted(by: { $0.key < $1.key }) {
      text += "# TYPE \(name) \(family.type)\n"
      for (labels, series) in family.series.sorted(by: { $0.key < $1.key }) {
        let value = series.value
        text +=
          "\(name)\(labels) \(value == value.rounded() && abs(value) < 1e15 ? String(Int64(value)) : "\(value)")\n"
      }
    }
    return Array(text.utf8)
  }

  /// Sets a counter to a total that is counted elsewhere.
  func setTotal(_ name: String, _ dimensions: [(String, String)], to total: Double) {
    series(name, dimensions, type: "counter").set(total)
  }

  private func series(_ name: String, _ dimensions: [(String, String)], type: String) -> Series {
    let labels = dimensions.map { "\($0.0)=\"\(Self.escaped($0.1))\"" }.joined(separator: ",")
    let key = labels.isEmpty ? "" : "{\(labels)}"
    return families.withLock { families in
      if let found = families[name]?.series[key] { return found }
      let series = Series()
      families[name, default: Family(type: type)].series[key] = series
      return series
    }
  }

  private static func escaped(_ text: String) -> String {
    text.map { ["\\": "\\\\", "\"": "\\\"", "\n": "\\n"][$0] ?? String($0) }.joined()
  }

  // MARK: MetricsFactory

  /// A counter, by name and dimensions; the same ones give the same counter.
  package func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
    series(label, dimensions, type: "counter")
  }

  /// A counter of fractions.
  package func makeFloatingPointCounter(
    label: String, dimensions: [(String, String)]
  ) -> any FloatingPointCounterHandler {
    series(label, dimensions, type: "counter")
  }

  /// A gauge.
  package func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
    series(label, dimensions, type: "gauge")
  }

  /// A gauge: the last value recorded.
  package func makeRecorder(
    label: String, dimensions: [(String, String)], aggregate: Bool
  ) -> any RecorderHandler {
    series(label, dimensions, type: "gauge")
  }

  /// The sum of the times recorded, in seconds.
  package func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
    series(label, dimensions, type: "counter")
  }

  /// Handlers live as long as the registry.
  package func destroyCounter(_ handler: any CounterHandler) {}
  /// Handlers live as long as the registry.
  package func destroyFloatingPointCounter(_ handler: any FloatingPointCounterHandler) {}
  /// Handlers live as long as the registry.
  package func destroyMeter(_ handler: any MeterHandler) {}
  /// Handlers live as long as the registry.
  package func destroyRecorder(_ handler: any RecorderHandler) {}
  /// Handlers live as long as the registry.
  package func destroyTimer(_ handler: any TimerHandler) {}
}
