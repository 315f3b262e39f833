import Foundation
import KeyValueModel
import Support
import TestKit

/// One connection that writes to objects of its own, one request after the other.
final class CrashWriter: Sendable {
  private struct State {
    var objects: WriterObjects
    var random: SplitMix64
    /// A step that was requested and not answered: it was done completely, or not at all.
    var uncertain: WriteStep?
    /// The revision of the last write with an answer.
    var lastRevision = 0
    var isWriting = false
  }

  private let ledger: PromiseLedger
  private let state: Locked<State>

  init(_ number: Int, seed: UInt64, ledger: PromiseLedger) {
    self.ledger = ledger
    state = Locked(
      State(objects: WriterObjects(writer: number), random: SplitMix64(seed: seed, part: UInt64(number) + 1)))
  }

  /// Its objects as far as it knows.
  var objects: WriterObjects { state.withLock { $0.objects } }

  /// True while its thread runs.
  var isWriting: Bool { state.withLock { $0.isWriting } }

  /// Creates its objects.
  func found(over connection: WireConnection) throws {
    guard let cursor = Cursor(of: try connection.must(objects.founding)) else {
      throw LoopbackError(.malformed, "the response to the creation of the objects has no cursor")
    }
    ledger.acknowledge(cursor, by: objects.name)
    state.withLock { $0.lastRevision = cursor.revision }
    verify(over: connection)
  }

  /// Writes on a thread of its own until the connection ends or the server accepts no more writes.
  func start(port: UInt16) {
    state.withLock { $0.isWriting = true }
    Thread.detachNewThread { [self] in
      do throws(LoopbackError) {
        let connection = try WireConnection(SocketAddress(port: port), timeoutSeconds: CrashPlan.patienceSeconds)
        while try write(over: connection) {}
      } catch {
        if error.isOfBrokenServer { ledger.violation("\(objects.name): \(error)") }
      }
      state.withLock { $0.isWriting = false }
    }
  }

  /// Performs one step. Returns false if the server is draining.
  private func write(over connection: WireConnection) throws(LoopbackError) -> Bool {
    let (objects, step) = state.withLock { state in
      let step = WriteStep.random(from: state.objects, using: &state.random)
      state.uncertain = step
      return (state.objects, step)
    }
    // If this throws, the step stays uncertain.
    let response = try connection.exchange(objects.request(step))
    guard response.isSuccess else {
      state.withLock { $0.uncertain = nil }
      if response.status != 503 {
        ledger.violation("\(objects.name): \(step) was answered \(response.status) \(response.text)")
      }
      return false
    }
    guard let cursor = Cursor(of: response) else {
      ledger.violation("\(objects.name): \(step) was answered without a cursor")
      return false
    }
    ledger.acknowledge(cursor, by: objects.name)
    let isLater = state.withLock { state in
      state.objects = objects.acknowledging(step, response)
      state.uncertain = nil
      defer { state.lastRevision = cursor.revision }
      return cursor.revision > state.lastRevision
    }
    if !isLater { ledger.violation("\(objects.name): revision \(cursor.revision) is not later than the previous one") }
    return try learnEntries(over: connection)
  }

  /// Fetches the names that the server has made for entries, if the response does not have them.
  private func learnEntries(over connection: WireConnection) throws(LoopbackError) -> Bool {
    let objects = objects
    guard objects.entries.contains(where: { $0.reference == nil }) else { return true }
    let response = try connection.exchange(WireRequest("GET", "/v1/objects/\(objects.list)/entries"))
    guard response.isSuccess else { return false }
    state.withLock { $0.objects.learnEntries(response.json) }
    return true
  }

  /// Compares the server's state with the acknowledged one; nothing is written meanwhile.
  func verify(over connection: WireConnection) {
    let (known, uncertain, lastRevision) = state.withLock { ($0.objects, $0.uncertain, $0.lastRevision) }
    let read: WriterObjects
    do {
      read = try WriterObjects.read(writer: known.writer, over: connection)
    } catch {
      return ledger.violation("\(known.name): \(error)")
    }
    var applied: WriteStep?
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
      state.objects = (applied.map(known.after) ?? known).adopting(read)
      state.uncertain = nil
    }
  }

  /// Notes a step that was done without an answer.
  private func noteFound(_ step: WriteStep, _ read: WriterObjects, _ touched: [String], after last: Int) {
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
