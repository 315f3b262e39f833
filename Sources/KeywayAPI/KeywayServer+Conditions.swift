import HTTPServer
import Logging
import ModelStore

extension Condition {
  /// A request was refused because its client asks too often.
  static let rate = Condition(
    "rate", "requests are refused: their clients ask more often than access.requestsPerSecond allows")
  /// The store takes no writes.
  static let store = Condition(
    "store", "the store takes no writes, and reading goes on: see to its disk", level: .critical)
  /// Snapshots cannot be written.
  static let snapshots = Condition(
    "snapshots", "no snapshot can be written: the next start will take long, and old records stay", level: .error)
}

extension KeywayServer {
  /// Notes what becomes of a store.
  static func note(_ notice: StoreNotice, _ conditions: ConditionLog) {
    switch notice {
    case .refusesWrites(let reason): conditions.set(.store, isActive: true, detail: reason)
    case .takesWrites: conditions.set(.store, isActive: false)
    case .snapshotFailed(let reason): conditions.set(.snapshots, isActive: true, detail: reason)
    case .snapshotWritten: conditions.set(.snapshots, isActive: false)
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
