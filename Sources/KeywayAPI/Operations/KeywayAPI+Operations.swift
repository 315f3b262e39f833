internal import HTTPServer
internal import HTTPTypes
internal import Journal
internal import KeyValueModel
internal import Metrics
internal import ModelStore

/// What operators ask: alive, ready, status, metrics; and the pages that explain problems and schema.
extension KeywayAPI {
  func health() -> HandlerResponse {
    .response(json(Array("{\"status\":\"alive\"}".utf8)))
  }

  func readiness() throws(Problem) -> HandlerResponse {
    guard !isDraining else { throw Problem(.draining, "the server is about to stop") }
    try checkRecovered()
    return .response(json(Array("{\"status\":\"ready\"}".utf8)))
  }

  /// Throws `store-unavailable`, with how far it has come, while the store reads its journal.
  func checkRecovered() throws(Problem) {
    if case .recovering(let progress) = store.condition {
      throw Problem(.storeUnavailable, "the store is being read: \(progress)")
    }
  }

  func status() -> HandlerResponse {
    let snapshot = store.snapshot
    let counts = streams.counts
    let body: JSONObject = [
      "version": .string(KeywayAPI.version),
      "epoch": .string(store.epoch),
      "revision": .integer(Int64(snapshot.revision)),
      "oldest": .string(cursor(snapshot.oldestResumable)),
      "objects": .integer(Int64(snapshot.state.count)),
      "streams": .integer(Int64(counts.streams)),
      "cells": .integer(Int64(counts.cells)),
      "queries": .integer(Int64(counts.queries)),
      "observations": .integer(Int64(counts.observations)),
      "pendingBytes": .integer(Int64(hub.pendingBytes)),
      "lagging": .integer(Int64(hub.laggingStreams)),
      "draining": .bool(isDraining),
      "store": .object(storeStatus),
    ]
    return .response(json(body))
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

  func metrics() -> HandlerResponse {
    let snapshot = store.snapshot
    let counts = streams.counts
    let keys = idempotency.counts
    let gauges: [(String, Double)] = [
      ("keyway_revision", Double(snapshot.revision)),
      ("keyway_objects", Double(snapshot.state.count)),
      ("keyway_streams", Double(counts.streams)),
      ("keyway_cells", Double(counts.cells)),
      ("keyway_queries", Double(counts.queries)),
      ("keyway_observations", Double(counts.observations)),
      ("keyway_pending_bytes", Double(hub.pendingBytes)),
      ("keyway_lagging_streams", Double(hub.laggingStreams)),
      ("keyway_queued_writes", Double(store.queuedWrites)),
      ("keyway_idempotency_keys", Double(keys.keys)),
      ("keyway_idempotency_bytes", Double(keys.bytes)),
    ]
    for (label, value) in gauges { Meter(label: label, factory: registry).set(value) }
    // Counted where it happens, and carried over here.
    requests.export(to: registry)
    registry.setTotal("keyway_commits_total", [], to: Double(snapshot.revision))
    registry.setTotal("keyway_notifications_total", [], to: Double(counts.notifications))
    for failures in store.schema.expressionFailures {
      registry.setTotal(
        "keyway_expression_failures_total", [("entity", failures.entity), ("key", failures.key)],
        to: Double(failures.count))
    }
    return .response(
      Response(
        status: .ok, fields: [.contentType: "text/plain; version=0.0.4; charset=utf-8"], body: registry.rendered()))
  }

  func entities() -> HandlerResponse {
    .response(json(JSONSchema.document(of: store.schema)))
  }

  func entity(_ name: String) throws(Problem) -> HandlerResponse {
    let entity = try Problem.translating { () throws(ModelError) in try store.schema.requireEntity(name) }
    return .response(json(JSONSchema.document(of: entity)))
  }

  func explanation(of code: String) throws(Problem) -> HandlerResponse {
    guard let code = ProblemCode(rawValue: code) else { throw Problem(.notFound, "there is no problem '\(code)'") }
    let body: JSONObject = [
      "type": .string("/v1/problems/\(code.rawValue)"),
      "status": .integer(Int64(code.status.code)),
      "title": .string(code.explanation),
    ]
    return .response(json(body))
  }
}
