import HTTPServer
import Logging
import Store

extension Condition {
  /// A request was refused because its client asks too often.
  static let rate = Condition(
    "rate", "requests are refused: their clients ask more often than access.requestsPerSecond allows")
  /// The store takes no writes.
  static let store = Condition(
    "store", "the store takes no writes, and reading goes on: see to its disk", level: .critical)
  /// A write was refused because the objects take as much memory as they may.
  static let objects = Condition(
    "objects", "writes that add to the objects are refused: they take as much memory as objects.bytes allows",
    level: .error)
  /// Nothing is heard of the node that this one follows.
  static let leader = Condition(
    "leader", "nothing is heard of the node that this one follows: it goes on serving what it has", level: .error)
  /// Snapshots cannot be written.
  static let snapshots = Condition(
    "snapshots", "no snapshot can be written: the next start will take long, and old records stay", level: .error)
  /// What a peer keeps of the journal cannot be written.
  static let cache = Condition(
    "cache", "what this node keeps of the journal cannot be written: its next start reads all from the database",
    level: .warning)
}

extension KeywayServer {
  /// Notes what becomes of a store.
  static func note(_ notice: StoreNotice, _ node: Node, _ conditions: ConditionLog) {
    node.note(notice)
    switch notice {
    case .refusesWrites(let reason): conditions.set(.store, isActive: true, detail: reason)
    case .takesWrites: conditions.set(.store, isActive: false)
    case .refusesGrowth: conditions.note(.objects)
    case .snapshotFailed(let reason): conditions.set(.snapshots, isActive: true, detail: reason)
    case .snapshotWritten: conditions.set(.snapshots, isActive: false)
    case .cacheFailed(let reason): conditions.set(.cache, isActive: true, detail: reason)
    case .cacheWritten: conditions.set(.cache, isActive: false)
    }
  }

  /// Has the conditions, the lines of the log that were lost, and the open connections written down.
  static func collect(
    _ conditions: ConditionLog, _ log: LogOutput?, _ http: Server, in registry: PrometheusRegistry
  ) {
    registry.collect { [weak http] registry in
      export(conditions, log, to: registry)
      if let http { registry.set(.connections, to: http.openConnections) }
    }
  }

  /// Writes down what was counted of conditions, and which of them last; and how many lines of the log were lost.
  private static func export(_ conditions: ConditionLog, _ log: LogOutput?, to registry: PrometheusRegistry) {
    for (condition, count) in conditions.counts {
      registry.set(.conditions, ["condition": condition.name], to: Double(count.total))
      registry.set(.activeConditions, ["condition": condition.name], to: count.isActive ? 1 : 0)
    }
    if let log { registry.set(.droppedLogLines, to: Double(log.droppedLines)) }
  }
}
