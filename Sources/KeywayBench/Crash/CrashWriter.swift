import Foundation
import KeyValueModel
import Locking

/// One connection that writes, to objects that nobody else writes, one request after the other.
final class CrashWriter: Sendable {
  private struct State {
    var world: CrashWorld
    var random: CrashRandom
    /// A step that was asked for and not answered: it was done wholly, or not at all.
    var uncertain: CrashStep?
    /// The revision of the last write that was answered.
    var lastRevision: Int64 = 0
    var isWriting = false
  }

  private let plan: CrashPlan
  private let ledger: CrashLedger
  private let state: Locked<State>

  init(_ number: Int, plan: CrashPlan, ledger: CrashLedger) {
    self.plan = plan
    self.ledger = ledger
    state = Locked(
      State(world: CrashWorld(writer: number), random: CrashRandom(seed: plan.seed, part: number + 1)))
  }

  /// What its objects are as far as it knows.
  var world: CrashWorld { state.withLock { $0.world } }

  /// Whether its thread runs.
  var isWriting: Bool { state.withLock { $0.isWriting } }

  /// Makes its objects.
  func found(over connection: CrashConnection) throws {
    let answer = try connection.exchange(world.founding)
    guard answer.isSuccess, let cursor = answer.cursor else {
      throw CrashError.malformed("making the objects was answered \(answer.status) \(answer.text)")
    }
    ledger.acknowledge(cursor, by: world.name)
    state.withLock { $0.lastRevision = cursor.revision }
    verify(over: connection)
  }

  /// Writes on a thread of its own until the connection ends or the server wants no more.
  func start(port: UInt16) {
    state.withLock { $0.isWriting = true }
    Thread.detachNewThread { [self] in
      do throws(CrashError) {
        let connection = try CrashConnection(port: port, timeoutSeconds: plan.patienceSeconds)
        while try write(over: connection) {}
      } catch {
        switch error {
        case .timedOut, .malformed: ledger.violation("\(world.name): \(error)")
        default: break
        }
      }
      state.withLock { $0.isWriting = false }
    }
  }

  /// Does one step; false where the server drains.
  private func write(over connection: CrashConnection) throws(CrashError) -> Bool {
    let (world, step) = state.withLock { state in
      let step = CrashStep.random(from: state.world, using: &state.random)
      state.uncertain = step
      return (state.world, step)
    }
    // Where this throws, the step stays uncertain.
    let answer = try connection.exchange(world.request(step))
    guard answer.isSuccess else {
      state.withLock { $0.uncertain = nil }
      if answer.status != 503 {
        ledger.violation("\(world.name): \(step) was answered \(answer.status) \(answer.text)")
      }
      return false
    }
    guard let cursor = answer.cursor else {
      ledger.violation("\(world.name): \(step) was answered without a cursor")
      return false
    }
    ledger.acknowledge(cursor, by: world.name)
    let isLater = state.withLock { state in
      state.world = world.acknowledging(step, answer)
      state.uncertain = nil
      defer { state.lastRevision = cursor.revision }
      return cursor.revision > state.lastRevision
    }
    if !isLater { ledger.violation("\(world.name): revision \(cursor.revision) is no later than the one before") }
    return try learnEntries(over: connection)
  }

  /// Asks for the names that the server has made for entries, where the answer did not tell them.
  private func learnEntries(over connection: CrashConnection) throws(CrashError) -> Bool {
    let world = world
    guard world.entries.contains(where: { $0.reference == nil }) else { return true }
    let answer = try connection.exchange(CrashRequest(path: "/v1/objects/\(world.list)/entries"))
    guard answer.isSuccess else { return false }
    state.withLock { $0.world.learnEntries(answer.json) }
    return true
  }

  /// Compares what is there with what was acknowledged; nobody writes meanwhile.
  func verify(over connection: CrashConnection) {
    let (known, uncertain, lastRevision) = state.withLock { ($0.world, $0.uncertain, $0.lastRevision) }
    let read: CrashWorld
    do {
      read = try CrashWorld.read(writer: known.writer, over: connection)
    } catch {
      return ledger.violation("\(known.name): \(error)")
    }
    var applied: CrashStep?
    if let difference = read.difference(from: known) {
      guard let uncertain else { return ledger.violation("\(known.name): acknowledged, but now \(difference)") }
      if let other = read.difference(from: known.after(uncertain)) {
        return ledger.violation(
          "\(known.name): \(uncertain) without an answer is neither done nor undone: \(difference), or \(other)")
      }
      applied = uncertain
    }
    let touched = applied.map { read.revised(by: $0) } ?? []
    for (reference, revision) in known.revisions where !touched.contains(reference) {
      guard let now = read.revisions[reference], now != revision else { continue }
      ledger.violation("\(known.name): \(reference) was acknowledged with revision \(revision) and has \(now)")
    }
    if let applied { noteFound(applied, read, touched, after: lastRevision) }
    state.withLock { state in
      state.world = (applied.map(known.after) ?? known).adopting(read)
      state.uncertain = nil
    }
  }

  /// Notes a step that was done and never answered.
  private func noteFound(_ step: CrashStep, _ read: CrashWorld, _ touched: [String], after last: Int64) {
    let revisions = Set(touched.compactMap { read.revisions[$0] })
    guard revisions.count <= 1 else {
      return ledger.violation("\(read.name): \(step) left the revisions \(revisions.sorted())")
    }
    if let revision = revisions.first, revision <= last {
      ledger.violation("\(read.name): \(step), asked for after revision \(last), has revision \(revision)")
    }
    ledger.found(revisions.first, by: read.name)
  }
}
