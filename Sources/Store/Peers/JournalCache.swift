import Foundation
import Support

/// What a node keeps, in a directory, of a journal that it shares with others: the same records with the same digests
/// in the same order, and snapshots of its own. It may lack the end; nothing waits for it, and nothing that is answered
/// depends on it.
///
/// One thread makes it, where there is none yet, and writes it. `state` is all that changes, under its lock, which is
/// held for a look.
package final class JournalCache: Sendable {
  /// Makes one that has come as far as a journal.
  package typealias Making = @Sendable (_ origin: any SharedJournal) throws -> SQLiteJournal

  private struct State {
    var journal: SQLiteJournal?
    /// Why it cannot be written, or is not to be written any more.
    var failure: String?
    var note: (@Sendable (String?) -> Void)?
    /// Whether it is of no use any more.
    var isGivenUp = false
    var isStopped = false
    var isRunning = false
  }

  private let making: Making?
  private let state: Locked<State>
  /// Ends a pause early.
  private let stopping = DispatchSemaphore(value: 0)
  private let ended = DispatchSemaphore(value: 0)

  /// How what is written comes to the disk: a sync now and then, on a thread of its own.
  package static let durability = SQLiteJournal.Durability.relaxed(milliseconds: 1_000)
  /// What is taken over at a time.
  private static let chunkRecords = 4_096
  private static let chunkBytes = 8 << 20
  /// Between two looks for records, so that those of a busy journal come together.
  private static let pause = DispatchTimeInterval.milliseconds(50)
  /// After a look that failed.
  private static let failurePause = DispatchTimeInterval.seconds(1)
  /// After an attempt to make one that failed.
  private static let makingPause = DispatchTimeInterval.seconds(10)

  /// A cache that is there.
  package init(_ journal: SQLiteJournal) {
    making = nil
    state = Locked(State(journal: journal))
  }

  /// A cache that is to be made, by what the thread calls.
  package init(making: @escaping Making) {
    self.making = making
    state = Locked(State())
  }

  /// Where it is kept; nil where it is not made yet, or was given up.
  package var journal: SQLiteJournal? { state.withLock { $0.isGivenUp ? nil : $0.journal } }

  /// Calls `note` when it cannot be written, with the reason, and with nil when it can again.
  package func whenChanged(_ note: @escaping @Sendable (String?) -> Void) {
    let failure = state.withLock { state in
      state.note = note
      return state.failure
    }
    if let failure { note(failure) }
  }

  /// Gives up what it has, so that the next start begins another one: it is not what the journal has, or is damaged.
  package func giveUp(_ reason: String) {
    let journal = state.withLock { state in
      defer { state.isGivenUp = true }
      return state.isGivenUp ? nil : state.journal
    }
    guard let journal else { return }
    note(reason)
    journal.discard()
  }

  // MARK: What it takes over

  /// Takes over what a journal has beyond it now. Throws what keeps it from that: `refused` where the journal does not
  /// answer, `compacted` where it has forgotten what comes next, `damaged` where it has another history.
  package func catchUp(with origin: any SharedJournal) throws(JournalError) {
    while let journal, journal.bounds.last < origin.bounds.last {
      let records = try origin.records(
        after: journal.bounds.last, limit: Self.chunkRecords, bytes: Self.chunkBytes, waiting: .zero)
      guard !records.isEmpty else { return }
      try take(records, of: origin, journal)
    }
  }

  private func take(
    _ records: [JournalRecord], of origin: any SharedJournal, _ journal: SQLiteJournal
  ) throws(JournalError) {
    guard let newest = records.last?.revision else { return }
    try journal.append(records, after: journal.bounds.last)
    journal.maintain()
    guard let other = try? origin.digest(at: newest), try journal.digest(at: newest) != other else { return }
    let error = JournalError.damaged(
      place: journal.directory ?? "the cache", reason: "revision \(newest) is not what the journal has there")
    giveUp("\(error)")
    throw error
  }

  /// Puts revocations in the place of those that it has.
  func keep(_ revocations: [Revocation]) throws(JournalError) {
    guard let journal else { return }
    let present = Dictionary(try journal.revocations().map { ($0.key, $0) }) { first, _ in first }
    let wanted = Dictionary(revocations.map { ($0.key, $0) }) { first, _ in first }
    for revocation in revocations where present[revocation.key] != revocation {
      try journal.setRevocation(of: revocation.subject, to: revocation.milliseconds)
    }
    for (key, revocation) in present where wanted[key] == nil {
      try journal.setRevocation(of: revocation.subject, to: nil)
    }
  }

  // MARK: The thread

  /// From now on makes the cache, if need be, and takes over what comes, until `stop`. Calls `whenMade` once it is
  /// there.
  func follow(_ origin: any SharedJournal, _ whenMade: @escaping @Sendable (SQLiteJournal) -> Void) {
    let isFirst = state.withLock { state in
      guard !state.isRunning, !state.isStopped else { return false }
      state.isRunning = true
      return true
    }
    guard isFirst else { return }
    Thread.detachNewThread { [self, weak origin] in
      var isTold = false
      while !isOver, let origin {
        guard let journal = journal ?? made(of: origin) else { continue }
        if !isTold { whenMade(journal) }
        isTold = true
        follow(on: origin, journal)
      }
      ended.signal()
    }
  }

  private var isOver: Bool { state.withLock { $0.isStopped || $0.isGivenUp } }

  private func made(of origin: any SharedJournal) -> SQLiteJournal? {
    guard let making else { return nil }
    do {
      let journal = try making(origin)
      state.withLock { $0.journal = journal }
      if let revocations = try? origin.revocations() { try keep(revocations) }
      return journal
    } catch {
      if !isOver { note("\(error)") }
      pause(Self.makingPause)
      return nil
    }
  }

  /// Takes over what comes next, if something does within a second, and pauses.
  private func follow(on origin: any SharedJournal, _ journal: SQLiteJournal) {
    let records: [JournalRecord]
    do throws(JournalError) {
      records = try origin.records(
        after: journal.bounds.last, limit: Self.chunkRecords, bytes: Self.chunkBytes, waiting: .seconds(1))
    } catch {
      // Where the journal does not answer, or is over, it says so itself.
      if case .compacted = error { return giveUp("\(error)") }
      return pause(Self.failurePause)
    }
    do throws(JournalError) {
      if state.withLock({ $0.failure != nil }) { try journal.probe(bytes: 0) }
      try take(records, of: origin, journal)
      note(nil)
      if !records.isEmpty { pause(Self.pause) }
    } catch {
      note(error.description)
      pause(Self.failurePause)
    }
  }

  private func pause(_ time: DispatchTimeInterval) {
    if !isOver { _ = stopping.wait(timeout: .now() + time) }
  }

  private func note(_ failure: String?) {
    let note = state.withLock { state in
      defer { state.failure = failure }
      return (state.failure == nil) != (failure == nil) ? state.note : nil
    }
    note?(failure)
  }

  /// Ends it, with what is at hand without asking. To be called when the journal is closed.
  func stop(_ origin: any SharedJournal) {
    let isRunning = state.withLock { state in
      state.isStopped = true
      defer { state.isRunning = false }
      return state.isRunning
    }
    stopping.signal()
    if isRunning { ended.wait() }
    guard let journal else { return }
    while let records = origin.recentRecords(
      after: journal.bounds.last, limit: Self.chunkRecords, bytes: Self.chunkBytes),
      !records.isEmpty, (try? journal.append(records, after: journal.bounds.last)) != nil
    {}
    journal.close()
  }
}
