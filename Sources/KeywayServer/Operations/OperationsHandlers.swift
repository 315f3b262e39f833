import HTTPServer
import HTTPTypes
import KeyValueModel
import Store
import Synchronization

/// Serves health, readiness and status for operators, and the pages that explain problems.
struct OperationsHandlers: Sendable {
  let store: Store
  let node: any Node
  let streams: StreamRegistry
  let hub: StreamHub
  let ledger: MemoryLedger
  let readiness: Readiness

  /// `/healthz`: the process is alive.
  func health(_ request: borrowing Request, _ context: RequestContext) -> HandlerResponse {
    .response(.json(["status": .string("alive")]))
  }

  /// `/readyz`: the server accepts requests, including writes. Otherwise, a problem with the reason.
  func ready(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try readiness.checkWrites(toleratingRefusals: node.toleratesRefusals)
    try node.checkHearing()
    return .response(.json(["status": .string("ready")]))
  }

  /// `/v1/problems/{code}`: the meaning of a problem.
  func problem(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    guard let code = ProblemCode(rawValue: context[.code]) else {
      throw Problem(.notFound, "'\(context[.code])' is not a problem code")
    }
    return .response(
      .json([
        "type": .string("/v1/problems/\(code.rawValue)"),
        "status": .integer(Int64(code.status.code)),
        "title": .string(code.explanation),
      ]))
  }

  /// `/v1/status`: the open streams, and the progress of the store.
  func status(_ request: borrowing Request, _ context: RequestContext) -> HandlerResponse {
    let snapshot = store.snapshot
    let counts = streams.counts
    var body: JSONObject = [
      "version": .string(Release.version),
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
    for (name, value) in node.status(store).members { body[name] = value }
    return .response(.json(body))
  }

  /// The memory that the server holds for clients, and the memory of the objects, in bytes.
  private var memoryStatus: JSONObject {
    var status: JSONObject = [
      "bytes": .integer(Int64(ledger.total)), "limit": .integer(Int64(ledger.limit)),
      "clientLimit": .integer(Int64(ledger.clientLimit)),
    ]
    status["objects"] = .integer(Int64(store.snapshot.state.memoryBytes))
    status["objectsLimit"] = .integer(Int64(store.limits.transaction.memoryBytes))
    for use in MemoryUse.allCases { status["\(use)"] = .integer(Int64(ledger.bytes(for: use))) }
    return status
  }

  /// The status of the store's journal and disk.
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
}

/// The readiness of the server: it accepts requests once the store has read its journal, and until the server drains.
final class Readiness: Sendable {
  private let store: Store
  private let draining = Atomic(false)
  private let announced = Atomic(false)

  /// Creates the readiness of a server over a store.
  init(of store: Store) {
    self.store = store
  }

  /// True if the server is about to stop, even while it still accepts requests.
  fileprivate var isDraining: Bool { announced.load(ordering: .relaxed) }

  /// Announces that the server is about to stop.
  func announceDraining() { announced.store(true, ordering: .relaxed) }

  /// Stops accepting requests.
  func beginDraining() {
    announceDraining()
    draining.store(true, ordering: .relaxed)
  }

  /// Throws if clients should not send new requests: like `check()`, and also `draining` as soon as draining is
  /// announced, and `store-unavailable` if writes are refused, unless that is tolerated, since reads still succeed
  /// then.
  fileprivate func checkWrites(toleratingRefusals isTolerated: Bool) throws(Problem) {
    if isDraining { throw Self.draining }
    try check()
    if case .unavailable(let reason) = store.condition, !isTolerated {
      throw Problem(.storeUnavailable, "writes are refused, reads still succeed: \(reason)")
    }
  }

  private static var draining: Problem { Problem(.draining, "the server is about to stop") }

  /// Throws `draining`, or `store-unavailable` with the store's progress in reading its journal.
  func check() throws(Problem) {
    if draining.load(ordering: .relaxed) { throw Self.draining }
    if store.isRecovering, case .recovering(let progress) = store.condition {
      throw Problem(.storeUnavailable, "the store is being read: \(progress)")
    }
  }
}
