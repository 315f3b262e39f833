import Support
import TestKit

/// The observations of all clients of a crash test of several nodes, for use by all their threads.
final class RegisterLedger: Sendable {
  /// The counts over all rounds.
  struct Figures: Hashable, Sendable {
    var acknowledged = 0
    var refused = 0
    var open = 0
    var reads = 0
  }

  /// The moment of a request.
  struct Moment: Hashable, Sendable {
    var time: UInt64
    /// The newest revision that any client had seen then.
    var floor: Int
  }

  private struct Entries {
    var record = RoundRecord()
    var figures = Figures()
    /// The newest cursor in any answer.
    var newest: Cursor?
    var lastValue = RegisterSchema.firstValue
  }

  /// The promises that were broken.
  let promises: PromiseLedger
  private let entries = Locked(Entries())

  init(promises: PromiseLedger) { self.promises = promises }

  /// The present figures.
  var figures: Figures { entries.withLock { $0.figures } }

  /// The newest cursor that any client has seen; nil before the first.
  var newest: Cursor? { entries.withLock { $0.newest } }

  /// Returns a value that no request has set yet.
  func nextValue() -> Int {
    entries.withLock { entries in
      entries.lastValue += 1
      return entries.lastValue
    }
  }

  /// Returns the moment of a request that is about to be sent.
  func moment() -> Moment {
    entries.withLock { Moment(time: SystemClock.now(), floor: $0.newest?.revision ?? 0) }
  }

  /// Ends a round: returns its record, and begins the next.
  func takeRecord() -> RoundRecord {
    entries.withLock { entries in
      defer { entries.record = RoundRecord() }
      return entries.record
    }
  }

  /// Begins a round with the writes and reads that the previous one left open.
  func begin(carrying open: [RoundRecord.Open], _ judgements: [RoundRecord.Judgement]) {
    entries.withLock { $0.record = RoundRecord(carrying: open, judgements) }
  }

  /// Notes a write that was acknowledged; `moment` is that of its first attempt.
  func acknowledge(_ request: RegisterRequest, _ text: String, at moment: Moment, _ response: WireResponse) {
    guard let cursor = cursor(of: response, text) else { return }
    promises.acknowledge(cursor, by: text)
    let leaves = Dictionary(uniqueKeysWithValues: request.parts.map { ($0.register, $0.leaves) })
    entries.withLock { entries in
      entries.figures.acknowledged += 1
      entries.record.acknowledged.append(
        RoundRecord.Acknowledged(revision: cursor.revision, leaves: leaves, text: text))
      for part in request.parts {
        entries.record.note(
          part.register,
          RegisterOperation(
            invoked: moment.time, answered: SystemClock.now(),
            condition: request.condition(of: part, after: response.status), effect: .becomes(part.leaves)))
      }
    }
  }

  /// Notes a write that was refused; `moment` is that of its last attempt.
  func refuse(_ request: RegisterRequest, _ text: String, at moment: Moment, _ response: WireResponse) {
    guard let part = request.part(refusedBy: response), let condition = part.refusals[response.status] else {
      return promises.violation("\(text) was answered \(response.status) \(response.text)")
    }
    let words = "\(text) was answered \(response.status)"
    judge(words, part.register, at: moment, response, condition, refusedValue: request.value)
    entries.withLock { $0.figures.refused += 1 }
  }

  /// Notes a read of a register that shows `value`. A read without a cursor may show any state, and is not added to the
  /// history.
  func read(_ register: String, _ value: Int?, _ text: String, at moment: Moment?, _ response: WireResponse) {
    let words = "\(text) gave \(value.map(String.init) ?? "nothing")"
    judge(words, register, at: moment, response, .isState(value), refusedValue: nil)
    entries.withLock { $0.figures.reads += 1 }
  }

  private func judge(
    _ text: String, _ register: String, at moment: Moment?, _ response: WireResponse,
    _ condition: RegisterOperation.Condition, refusedValue: Int?
  ) {
    guard let cursor = cursor(of: response, text) else { return }
    entries.withLock { entries in
      entries.record.judgements.append(
        RoundRecord.Judgement(
          text: text, register: register, revision: cursor.revision, floor: moment?.floor ?? 0, condition: condition,
          refusedValue: refusedValue))
      guard let moment else { return }
      entries.record.note(
        register,
        RegisterOperation(
          invoked: moment.time, answered: SystemClock.now(), condition: condition, effect: .none))
    }
  }

  /// Notes a write whose outcome is not known; `moment` is that of its first attempt.
  func leaveOpen(_ request: RegisterRequest, _ text: String, at moment: Moment) {
    let open = RoundRecord.Open(invoked: moment.time, parts: request.parts, value: request.value, text: text)
    entries.withLock { entries in
      entries.figures.open += 1
      entries.record.open.append(open)
      for (register, operation) in open.operations { entries.record.note(register, operation) }
    }
  }

  /// Returns the cursor of an answer. Every later request for the newest state must reflect that cursor.
  private func cursor(of response: WireResponse, _ text: String) -> Cursor? {
    guard let cursor = Cursor(of: response) else {
      promises.violation("\(text): \(response.status) without Keyway-Cursor")
      return nil
    }
    promises.check(epoch: cursor.epoch, by: text)
    entries.withLock { entries in
      if cursor.revision > entries.newest?.revision ?? -1 { entries.newest = cursor }
    }
    return cursor
  }
}
