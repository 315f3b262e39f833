import HTTPServer
import Logging
import ModelStore

extension Condition {
  /// The store takes no writes.
  static let store = Condition(
    "store", "the store takes no writes: see to its disk, and start the server again", level: .critical)
  /// Snapshots cannot be written.
  static let snapshots = Condition(
    "snapshots", "no snapshot can be written: the next start will take long, and old records stay", level: .error)
}

extension KeywayServer {
  /// Has the conditions of a store noticed, also where no client meets them.
  static func watch(_ store: Store, _ conditions: ConditionLog) {
    conditions.watch { [weak store] conditions in
      guard let store else { return }
      let reason: String? = if case .unavailable(let reason) = store.condition { reason } else { nil }
      conditions.set(.store, isActive: reason != nil, detail: reason)
      let failure = store.snapshotFailure
      conditions.set(.snapshots, isActive: failure != nil, detail: failure)
    }
  }

  /// Writes down what was counted of conditions, and which of them last; and how many lines of the log were lost.
  static func export(_ conditions: ConditionLog, _ log: LogOutput?, to registry: PrometheusRegistry) {
    for (condition, count) in conditions.counts {
      registry.setTotal("keyway_conditions_total", ["condition": condition.name], to: Double(count.total))
      registry.set("keyway_condition_active", ["condition": condition.name], to: count.isActive ? 1 : 0)
    }
    if let log { registry.setTotal("keyway_log_lines_dropped_total", to: Double(log.droppedLines)) }
  }
}
