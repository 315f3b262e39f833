import HTTPServer
import HTTPTypes
import KeyValueModel
import Store

/// Serves `/metrics` in the Prometheus text format.
struct MetricsHandler: Sendable {
  let store: Store
  let streams: StreamRegistry
  let hub: StreamHub
  let idempotency: IdempotencyStore
  let ledger: MemoryLedger
  let registry: PrometheusRegistry

  /// Returns all metrics.
  func get(_ request: borrowing Request, _ context: RequestContext) -> HandlerResponse {
    registry.set(.buildInfo, ["version": Release.version], to: 1)
    exportStore()
    exportStreams()
    exportMemory()
    return .response(
      Response(
        status: .ok, fields: [.contentType: "text/plain; version=0.0.4; charset=utf-8"], body: registry.rendered()))
  }

  private func exportStore() {
    let snapshot = store.snapshot
    registry.set(.revision, to: Double(snapshot.revision))
    registry.set(.oldestRevision, to: Double(snapshot.oldestResumable))
    registry.set(.objects, to: snapshot.state.count)
    registry.set(.objectMemory, to: snapshot.state.memoryBytes)
    registry.set(.objectMemoryLimit, to: store.limits.transaction.memoryBytes)
    registry.set(.objectRefusals, ["reason": "total"], to: Double(store.growthRefusals.count(by: .objects)))
    registry.set(.objectRefusals, ["reason": "client"], to: Double(store.growthRefusals.count(by: .client)))
    registry.set(.leases, to: store.leaseCount)
    registry.set(.storeBytes, to: store.journal.fileBytes)
    registry.set(.queuedWrites, to: store.queuedWrites)
    registry.set(.commits, to: Double(snapshot.revision))
    registry.set(.commitDurations, to: store.commitDurations)
    registry.set(.syncDurations, to: store.syncDurations)
    for failures in store.schema.expressionFailures {
      registry.set(
        .expressionFailures, ["entity": failures.entity, "key": failures.key], to: Double(failures.count))
    }
    let keys = idempotency.counts
    registry.set(.idempotencyKeys, to: keys.keys)
    registry.set(.idempotencyBytes, to: keys.bytes)
  }

  private func exportStreams() {
    let counts = streams.counts
    registry.set(.streams, to: counts.streams)
    registry.set(.cutStreams, to: counts.cutStreams)
    registry.set(.cells, to: counts.cells)
    registry.set(.queries, to: counts.queries)
    registry.set(.observations, to: counts.observations)
    registry.set(.notifications, to: Double(counts.notifications))
    registry.set(.pendingBytes, to: hub.pendingBytes)
    registry.set(.laggingStreams, to: hub.laggingStreams)
    registry.set(.lagDurations, to: hub.lagDurations)
  }

  private func exportMemory() {
    for use in MemoryUse.allCases { registry.set(.memory, ["use": use.rawValue], to: ledger.bytes(for: use)) }
    registry.set(.memoryLimit, to: ledger.limit)
    for reason in MemoryRefusal.allCases {
      registry.set(.memoryRefusals, ["reason": reason.rawValue], to: Double(ledger.refusals(for: reason)))
    }
    let use = ProcessUse.current
    if let bytes = use.residentBytes { registry.set(.residentMemory, to: bytes) }
    if let bytes = use.addressSpaceBytes { registry.set(.virtualMemory, to: bytes) }
    if let count = use.openDescriptors { registry.set(.openDescriptors, to: count) }
    registry.set(.mostDescriptors, to: use.descriptorLimit)
  }
}
