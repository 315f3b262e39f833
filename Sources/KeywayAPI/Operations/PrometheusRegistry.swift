import Locking

/// What the server counts and measures, in the Prometheus text format, version 0.0.4.
///
/// The names of metrics and labels are the server's own: they need no escaping, the values of labels do. What is
/// counted often is counted where it happens, without this lock, and carried over by a collector.
package final class PrometheusRegistry: Sendable {
  /// The labels of one value, in the order in which they are written.
  typealias Labels = KeyValuePairs<String, String>

  private enum Kind: String {
    case counter, gauge
  }

  private struct Family {
    let kind: Kind
    /// The values by their labels as they are written.
    var values: [String: Double] = [:]
  }

  private let families = Locked<[String: Family]>([:])
  private let collectors = Locked<[@Sendable (PrometheusRegistry) -> Void]>([])

  /// A registry without metrics.
  package init() {}

  /// Counts one more.
  func increment(_ counter: String, _ labels: Labels = [:]) {
    update(counter, .counter, labels) { $0 += 1 }
  }

  /// Sets a counter to a total that is counted elsewhere.
  func setTotal(_ counter: String, _ labels: Labels = [:], to total: Double) {
    update(counter, .counter, labels) { $0 = total }
  }

  /// Sets a gauge.
  func set(_ gauge: String, _ labels: Labels = [:], to value: Double) {
    update(gauge, .gauge, labels) { $0 = value }
  }

  private func update(_ name: String, _ kind: Kind, _ labels: Labels, _ change: (inout Double) -> Void) {
    let texts = labels.map { "\($0.key)=\"\(Self.escaped($0.value))\"" }
    let key = texts.isEmpty ? "" : "{\(texts.joined(separator: ","))}"
    families.withLock { change(&$0[name, default: Family(kind: kind)].values[key, default: 0]) }
  }

  private static func escaped(_ text: String) -> String {
    text.map { ["\\": "\\\\", "\"": "\\\"", "\n": "\\n"][$0] ?? String($0) }.joined()
  }

  /// Has `collector` called before each rendering, to write down what is counted elsewhere.
  func collect(_ collector: @escaping @Sendable (PrometheusRegistry) -> Void) {
    collectors.withLock { $0.append(collector) }
  }

  /// Everything, one family after the other in the order of names.
  func rendered() -> [UInt8] {
    for collector in collectors.withLock({ $0 }) { collector(self) }
    var text = ""
    for (name, family) in families.withLock({ $0 }).sorted(by: { $0.key < $1.key }) {
      text += "# TYPE \(name) \(family.kind.rawValue)\n"
      for (labels, value) in family.values.sorted(by: { $0.key < $1.key }) {
        let isWhole = value == value.rounded() && abs(value) < 1e15
        text += "\(name)\(labels) \(isWhole ? String(Int64(value)) : "\(value)")\n"
      }
    }
    return Array(text.utf8)
  }
}
