import Foundation
import KeyValueModel
import KeywayClient
import Locking

/// One subscriber: after whatever happens it comes back with its last id, and believes nothing.
final class CrashSubscriber: Sendable {
  private struct State {
    var shown = CrashShown()
    /// The last id, which names the state that is shown.
    var cursor: CrashCursor?
    /// Whether the state may be told: at the beginning, and after a reset.
    var awaitsState = true
    var isStopped = false
    var isRunning = false
  }

  let observation: CrashObservation
  /// For messages.
  let name: String
  private let world: CrashWorld
  private let plan: CrashPlan
  private let ledger: CrashLedger
  private let state = Locked(State())

  /// A subscriber of the objects of one writer.
  init(_ observation: CrashObservation, of world: CrashWorld, plan: CrashPlan, ledger: CrashLedger) {
    self.observation = observation
    self.world = world
    self.plan = plan
    self.ledger = ledger
    name = "subscriber of \(observation) of \(world.name)"
  }

  /// The number of the writer whose objects it observes.
  var writer: Int { world.writer }

  /// Whether its thread runs.
  var isRunning: Bool { state.withLock { $0.isRunning } }

  /// Where what it shows is another than the present state.
  func difference(from world: CrashWorld) -> String? {
    state.withLock { $0.shown.difference(from: world, observation) }
  }

  /// Subscribes on a thread of its own, again and again.
  func start(port: UInt16) {
    state.withLock { $0.isRunning = true }
    Thread.detachNewThread { [self] in
      while !state.withLock({ $0.isStopped }) {
        do {
          try subscribe(port: port)
        } catch let error as CrashError {
          switch error {
          case .timedOut, .malformed: ledger.violation("\(name): \(error)")
          default: break
          }
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
    var request = observation.request(world)
    request.lastEventID = state.withLock { $0.cursor?.description }
    let (stream, answer) = try CrashStream.open(request, port: port, timeoutSeconds: plan.patienceSeconds)
    guard let stream else {
      // Recovering, or draining.
      if answer.status == 503 { return }
      throw CrashContradiction("the subscription was answered \(answer.status) \(answer.text)")
    }
    // Events of a commit whose last, which has the id, has not come: they come again where the connection is cut.
    var group: [CrashTold] = []
    while let event = try stream.next() {
      switch event.event {
      case "open", "bye": break
      case "heartbeat": try take(heartbeat: event)
      case "reset": try reset(event, port: port)
      default:
        group.append(try CrashTold(event))
        guard event.id != state.withLock({ $0.cursor?.description ?? "" }) else { continue }
        try take(group, id: event.id)
        group = []
      }
    }
  }

  private func take(_ group: [CrashTold], id: String) throws(CrashContradiction) {
    guard let cursor = CrashCursor(id) else { throw CrashContradiction("the id \(id) is no cursor") }
    ledger.tell(cursor, by: name)
    let isInitial = group.contains { $0.isInitial }
    try state.withLock { (state) throws(CrashContradiction) in
      guard isInitial == state.awaitsState else {
        throw CrashContradiction(
          "\(id) is \(isInitial ? "" : "not ")the state; the last id was \(Self.text(state.cursor))")
      }
      if let last = state.cursor, cursor.revision < last.revision || !isInitial && cursor.revision == last.revision {
        throw CrashContradiction("\(id) came after \(last)")
      }
      for told in group {
        guard told.revision == cursor.revision else {
          throw CrashContradiction("\(id) ends what has an event of revision \(told.revision)")
        }
        guard isInitial || told.writer == world.name else {
          throw CrashContradiction("\(id) was written by \(told.writer ?? "nobody")")
        }
      }
      try state.shown.apply(group)
      state.cursor = cursor
      state.awaitsState = false
    }
  }

  private func take(heartbeat event: ServerSentEvent) throws(CrashContradiction) {
    guard let cursor = CrashCursor(event.id) else { throw CrashContradiction("the id \(event.id) is no cursor") }
    ledger.tell(cursor, by: name)
    try state.withLock { (state) throws(CrashContradiction) in
      if let last = state.cursor, cursor.revision < last.revision {
        throw CrashContradiction("heartbeat \(cursor) came after \(last)")
      }
      state.cursor = cursor
    }
  }

  /// A reset is right only where the history does not reach back to the cursor.
  private func reset(_ event: ServerSentEvent, port: UInt16) throws(CrashContradiction) {
    let cursor = state.withLock { state in
      state.awaitsState = true
      return state.cursor
    }
    let reason = (try? Value(json: event.data))?.member("reason").text
    guard reason == "compacted", let cursor else {
      throw CrashContradiction("a reset where the last id was \(Self.text(cursor)): \(event.data)")
    }
    ledger.reset()
    // Asked after the reset: the oldest cursor only grows. A server that is gone meanwhile cannot be asked.
    guard let connection = try? CrashConnection(port: port, timeoutSeconds: plan.patienceSeconds),
      let status = try? connection.exchange(CrashRequest(path: "/v1/status")), status.isSuccess,
      let oldest = status.json.member("oldest").text.flatMap(CrashCursor.init)
    else { return }
    guard cursor.revision < oldest.revision else {
      throw CrashContradiction("a reset where the last id was \(cursor) and the history begins at \(oldest)")
    }
  }

  private static func text(_ cursor: CrashCursor?) -> String { cursor?.description ?? "none" }
}
