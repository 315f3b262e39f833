import HTTPServer
import HTTPTypes
import Journal
import KeyValueModel
import ModelStore

/// What operators ask: alive, ready, status, metrics; and the pages that explain problems.
struct OperationsHandlers: Sendable {
  let store: Store
  let node: Node
  let streams: StreamRegistry
  let hub: StreamHub
  let idempotency: IdempotencyStore
  let ledger: MemoryLedger
  let readiness: Readiness
  let registry: PrometheusRegistry

  /// `/healthz`: the process answers.
  func health(_ request: borrowing Request, _ context: RequestContext) -> HandlerResponse {
    .response(.json(["status": .string("alive")]))
  }

  /// `/readyz`: it takes requests, writes among them, or a problem that says why it does not.
  func ready(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try readiness.checkWrites()
    return .response(.json(["status": .string("ready")]))
  }

  /// `/v1/problems/{code}`: what a problem means.
  func problem(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    guard let code = ProblemCode(rawValue: context[.code]) else {
      throw Problem(.notFound, "there is no problem '\(context[.code])'")
    }
    return .response(
      .json([
        "type": .string("/v1/problems/\(code.rawValue)"),
        "status": .integer(Int64(code.status.code)),
        "title": .string(code.explanation),
      ]))
  }

  /// `/v1/status`: what is open and how far the store has come.
  func status(_ request: borrowing Request, _ context: RequestContext) -> HandlerResponse {
    let snapshot = store.snapshot
    let counts = streams.counts
    var body: JSONObject = [
      "version": .string(KeywayServer.version),
      "epoch": .string(store.epoch),
      "revision": .integer(Int64(snapshot.revision)),
      "oldest": .string(store.cursor(snapshot.oldestResumable).description),
      "objects": .integer(Int64(snapshot.state.count)),
      "streams": .integer(Int64(counts.streams)),
      "cells": .integer(Int64(counts.cells)),
      "queries": .integer(Int64(counts.queries)),
      "observations": .integer(Int64(counts.observations)),
      "pendingBytes": .integer(Int64(hub.pendingBytes)),
      "lagging": .integer(Int64(hub.laggingStreams)),
      "memory": .object(memoryStatus),
      "draining": .bool(readiness.isDraining),
      "store": .object(storeStatus),
    ]
    for (name, value) in node.status.members { body[name] = value }
    return .response(.json(body))
  }

  /// What clients make the server hold, in bytes.
  private var memoryStatus: JSONObject {
    var status: JSONObject = [
      "bytes": .integer(Int64(ledger.total)), "limit": .integer(Int64(ledger.limit)),
      "clientLimit": .integer(Int64(ledger.clientLimit)),
    ]
    for use in MemoryUse.allCases { status["\(use)"] = .integer(Int64(ledger.bytes(for: use))) }
    return status
  }

  /// What there is to say of the store's journal and disk.
  private var storeStatus: JSONObject {
    let bounds = store.journal.bounds
    var status: JSONObject = [
      "condition": .string("serving"),
      "journal": .object([
        "base": .integer(Int64(bounds.base)), "last": .integer(Int64(bounds.last)),
        "snapshot": .integer(Int64(store.snapshotRevision)),
      ]),
    ]
    switch store.condition {
    case .serving: break
    case .recovering(let progress):
      status["condition"] = .string("recovering")
      status["reason"] = .string(progress.description)
    case .unavailable(let reason):
      status["condition"] = .string("unavailable")
      status["reason"] = .string(reason)
    }
    if let failure = store.snapshotFailure { status["snapshotFailure"] = .string(failure) }
    return status
  }

  /// `/metrics`, in the Prometheus text format.
  func metrics(_ request: borrowing Request, _ context: RequestContext) -> HandlerResponse {
    let snapshot = store.snapshot
    let counts = streams.counts
    let keys = idempotency.counts
    let gauges: KeyValuePairs = [
      "keyway_revision": Int(snapshot.revision),
      "keyway_objects": snapshot.state.count,
      "keyway_streams": counts.streams,
      "keyway_cut_streams": counts.cutStreams,
      "keyway_cells": counts.cells,
      "keyway_queries": counts.queries,
      "keyway_observations": counts.observations,
      "keyway_pending_bytes": hub.pendingBytes,
      "keyway_lagging_streams": hub.laggingStreams,
      "keyway_queued_writes": store.queuedWrites,
      "keyway_idempotency_keys": keys.keys,
      "keyway_idempotency_bytes": keys.bytes,
    ]
    for (name, value) in gauges { registry.set(name, to: Double(value)) }
    registry.setTotal("keyway_commits_total", to: Double(snapshot.revision))
    registry.setTotal("keyway_notifications_total", to: Double(counts.notifications))
    for use in MemoryUse.allCases {
      registry.set("keyway_memory_bytes", ["use": use.rawValue], to: Double(ledger.bytes(for: use)))
    }
    registry.set("keyway_memory_limit_bytes", to: Double(ledger.limit))
    for reason in MemoryRefusal.allCases {
      registry.setTotal(
        "keyway_memory_refusals_total", ["reason": reason.rawValue], to: Double(ledger.refusals(for: reason)))
    }
    for failures in store.schema.expressionFailures {
      registry.setTotal(
        "keyway_expression_failures_total", ["entity": failures.entity, "key": failures.key],
        to: Double(failures.count))
    }
    return .response(
      Response(
        status: .ok, fields: [.contentType: "text/plain; version=0.0.4; charset=utf-8"], body: registry.rendered()))
  }
}
