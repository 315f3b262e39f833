import Foundation
import KeyValueModel
import Support
import TestKit

/// One subscriber: after whatever happens it comes back with its last id, and checks every event.
final class CrashSubscriber: Sendable {
  private struct State {
    var received = SubscriberState()
    /// The last id, which names the state that was received.
    var cursor: Cursor?
    /// Whether the state may come: at the beginning, and after a reset.
    var awaitsState = true
    var isStopped = false
    var isRunning = false
  }

  let subscription: CrashSubscription
  /// For messages.
  let name: String
  /// The objects of the writer as they were at the beginning.
  private let objects: WriterObjects
  private let ledger: PromiseLedger
  private let state = Locked(State())

  /// A subscriber of the objects of one writer.
  init(_ subscription: CrashSubscription, of objects: WriterObjects, ledger: PromiseLedger) {
    self.subscription = subscription
    self.objects = objects
    self.ledger = ledger
    name = "subscriber of \(subscription) of \(objects.name)"
  }

  /// The number of the writer whose objects it observes.
  var writer: Int { objects.writer }

  /// Whether its thread runs.
  var isRunning: Bool { state.withLock { $0.isRunning } }

  /// Where what it has received is another than the present state.
  func difference(from objects: WriterObjects) -> String? {
    state.withLock { $0.received.difference(from: objects, subscription) }
  }

  /// Subscribes on a thread of its own, again and again.
  func start(port: UInt16) {
    state.withLock { $0.isRunning = true }
    Thread.detachNewThread { [self] in
      while !state.withLock({ $0.isStopped }) {
        do {
          try subscribe(port: port)
        } catch let error as LoopbackError {
          // The server recovers, drains or is gone.
          if error.isOfBrokenServer { ledger.violation("\(name): \(error)") }
        } catch {
          // Nothing after this would mean anything.
          ledger.violation("\(name): \(error)")
          break
        }
        usleep(3000)
      }
      state.withLock { $0.isRunning = false }
    }
  }

  /// Ends the thread once its connection ends.
  func stop() { state.withLock { $0.isStopped = true } }

  private func subscribe(port: UInt16) throws {
    let request = subscription.request(objects)
    let headers = state.withLock { $0.cursor.map { ["Last-Event-ID": $0.description] } } ?? [:]
    let stream = try WireClient(port: port).stream(request.target, headers, method: request.method, body: request.body)
    // Events of a commit whose last, which has the id, has not come: they come again where the connection is cut.
    var group: [ReceivedEvent] = []
    while let event = try stream.block(before: Deadline(seconds: CrashPlan.patienceSeconds)) {
      switch event.name {
      case "open", "bye": break
      case nil where event.data == nil: break
      case "heartbeat": try take(heartbeat: event)
      case "reset": try reset(event, port: port)
      default:
        group.append(try ReceivedEvent(event))
        guard let id = event.id else { continue }
        try take(group, id: id)
        group = []
      }
    }
  }

  private func take(_ group: [ReceivedEvent], id: String) throws(BrokenPromise) {
    let cursor = try cursor(id)
    try state.withLock { (state) throws(BrokenPromise) in
      let isInitial = group.contains { $0.isInitial }
      guard isInitial == state.awaitsState else {
        throw BrokenPromise("\(id) is \(isInitial ? "" : "not ")the state; the last id was \(Self.text(state.cursor))")
      }
      if let last = state.cursor, cursor.revision < last.revision || !isInitial && cursor.revision == last.revision {
        throw BrokenPromise("\(id) came after \(last)")
      }
      for received in group {
        guard received.revision == cursor.revision else {
          throw BrokenPromise("\(id) ends what has an event of revision \(received.revision)")
        }
        guard isInitial || received.writer == objects.name else {
          throw BrokenPromise("\(id) was written by \(received.writer ?? "no writer")")
        }
      }
      try state.received.apply(group)
      state.cursor = cursor
      state.awaitsState = false
    }
  }

  private func take(heartbeat event: WireEvent) throws(BrokenPromise) {
    let cursor = try cursor(event.id ?? "")
    try state.withLock { (state) throws(BrokenPromise) in
      if let last = state.cursor, cursor.revision < last.revision {
        throw BrokenPromise("heartbeat \(cursor) came after \(last)")
      }
      state.cursor = cursor
    }
  }

  /// Takes an id apart and notes it.
  private func cursor(_ id: String) throws(BrokenPromise) -> Cursor {
    guard let cursor = Cursor(id) else { throw BrokenPromise("the id \(id) is no cursor") }
    ledger.noteEvent(cursor, of: name)
    return cursor
  }

  /// A reset is right only where the history does not reach back to the cursor.
  private func reset(_ event: WireEvent, port: UInt16) throws(BrokenPromise) {
    let cursor = state.withLock { state in
      state.awaitsState = true
      return state.cursor
    }
    guard event.json["reason"].text == "compacted", let cursor else {
      throw BrokenPromise("a reset where the last id was \(Self.text(cursor)): \(event.text)")
    }
    ledger.noteReset()
    // Asked after the reset: the oldest cursor only grows. A server that is gone meanwhile cannot be asked.
    guard let status = try? WireClient(port: port).json("/v1/status"),
      let oldest = status["oldest"].text.flatMap(Cursor.init)
    else { return }
    guard cursor.revision < oldest.revision else {
      throw BrokenPromise("a reset where the last id was \(cursor) and the history begins at \(oldest)")
    }
  }

  private static func text(_ cursor: Cursor?) -> String { cursor?.description ?? "none" }
}

extension LoopbackError {
  /// Whether a server that only recovers, drains or is killed never causes it.
  var isOfBrokenServer: Bool {
    switch reason {
    case .timedOut, .malformed: true
    case .unexpectedStatus(let status): status != 503
    case .connectionRefused, .connectionReset, .connectionClosed, .interrupted, .failed: false
    }
  }
}
