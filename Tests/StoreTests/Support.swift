import Dispatch
import Foundation
import KeyValueModel
import KeyValueObserving
import Store
import Support
import TestKit
import Testing

let accounts = "entities: {Account: {keys: {balance: {type: integer}, note: {type: string}, peer: {toOne: Account}}}}"

func ref(_ text: String) throws -> Reference {
  try #require(Reference(text), "\(text) is no reference")
}

/// A publisher that records events in their order.
final class Recorder: StorePublisher {
  struct Batch {
    let events: [ObserverEvent]
    let upTo: Revision
  }

  private let batches = Locked<[Batch]>([])

  var published: [Batch] { batches.withLock { $0 } }

  func publish(
    _ queryEvents: [QueryEvent], upTo revision: Revision,
    notifying notify: (_ receive: (ObserverEvent) -> Void) -> Void
  ) -> Revision {
    var events: [ObserverEvent] = []
    notify { events.append($0) }
    batches.withLock { $0.append(Batch(events: events, upTo: revision)) }
    return revision
  }
}

/// Returns a change as a line.
func describe(_ change: Change) -> String {
  let cell = change.cell.map { "[\($0)] " } ?? ""
  let prior = change.isPrior ? " prior" : ""
  return "\(cell)\(change.observation.object).\(change.observation.keyPath.text)\(prior)"
    + " \(change.old?.json ?? "-") \(change.new?.json ?? "-")"
}

func describe(_ event: ObserverEvent) -> String {
  let gone = event.gone.map { "\($0.cell ?? "-") \($0.object)" }
  return "\(event.revision) \(event.writer ?? "-") \(event.changes.map(describe)) \(gone)"
}

/// A store with a recorder, and waiting writes.
struct StoreFixture {
  let recorder = Recorder()
  let store: Store

  init(_ yaml: String = accounts, _ change: (inout StoreLimits) -> Void = { _ in }) throws {
    var limits = StoreLimits()
    change(&limits)
    store = Store(schema: try Schema(yaml: yaml), epoch: "test", limits: limits, publisher: recorder)
  }

  /// Writes and waits for the answer, which comes after publication; nil where the store is overloaded.
  @discardableResult
  func write(_ operations: KeyValueModel.Operation...) async -> Result<Commit, ModelError>? {
    await write(all: operations)
  }

  /// The same of operations that are counted elsewhere.
  @discardableResult
  func write(all operations: [KeyValueModel.Operation]) async -> Result<Commit, ModelError>? {
    await withCheckedContinuation { continuation in
      let isAccepted = store.submit(Transaction(operations, writer: "w")) { outcome, _, _ in
        continuation.resume(returning: outcome)
      }
      if !isAccepted { continuation.resume(returning: nil) }
    }
  }

  /// Waits until all earlier writes are answered.
  func drain() async {
    // While the queue is full the store refuses, which does not count.
    #expect(await Deadline().comes { await write() != nil })
  }

  func observation(_ object: String, _ path: String, _ options: ObservingOptions = [.old, .new]) throws -> Observation {
    let reference = try ref(object)
    let keyPath = try store.schema.resolve(path, from: store.schema.requireEntity(reference.entity))
    return Observation(object: reference, keyPath: keyPath, options: options)
  }

  func observe(_ observations: [Observation], _ observer: UInt64 = 1, cell: String? = nil) {
    store.withPublication { publication in
      publication.observers.add(observations, of: ObserverID(observer), cell: cell, in: publication.snapshot.state)
    }
  }
}

/// A write that shows the outcome and the state to a closure on the writer.
final class ConcludedWrite: StoreWrite {
  let transaction: Transaction
  let client: Int
  let byteCount = 0
  private let concluding: @Sendable (Result<Commit, ModelError>, borrowing ModelState) -> Void
  private let finishing: @Sendable () -> Void

  init(
    _ transaction: Transaction, of client: Int = Store.ownClient,
    conclude: @escaping @Sendable (Result<Commit, ModelError>, borrowing ModelState) -> Void,
    finish: @escaping @Sendable () -> Void = {}
  ) {
    (self.transaction, self.client, concluding, finishing) = (transaction, client, conclude, finish)
  }

  func conclude(_ outcome: Result<Commit, ModelError>, _ state: borrowing ModelState, _ revision: Revision) {
    concluding(outcome, state)
  }

  func finish(_ failure: StoreUnavailable?) { finishing() }
}

/// A gate that blocks the writer until it is opened.
final class Gate: Sendable {
  private let semaphore = DispatchSemaphore(value: 0)
  private let reached = DispatchSemaphore(value: 0)

  /// Blocks the writer in the conclusion of an empty transaction, and waits until it is there.
  func close(_ store: Store) {
    let write = ConcludedWrite(Transaction([])) { [self] _, _ in
      reached.signal()
      semaphore.wait()
    }
    #expect(store.submit(write))
    reached.wait()
  }

  func open() { semaphore.signal() }
}

extension Publication {
  /// Returns the events of a stream with these cells that resumes, and the cells that are left out; nil if it cannot.
  func replay(
    _ cells: [(name: String?, observations: [Observation])], after revision: Revision
  ) -> (events: [ObserverEvent], absent: [String?])? {
    var events: [ObserverEvent] = []
    guard (snapshot.oldestResumable...snapshot.revision).contains(revision),
      let missed = MissedCommits(after: revision, publishedHistory)
    else { return nil }
    let replay = Replay(cells, missed, limits: limits) { events.append($0) }
    return (events, replay.absent)
  }
}

/// A folder for a store, removed with this object.
final class Folder {
  let path = FileManager.default.temporaryDirectory.appending(path: "keyway-store-\(UUID().uuidString)").path

  deinit { try? FileManager.default.removeItem(atPath: path) }
}
