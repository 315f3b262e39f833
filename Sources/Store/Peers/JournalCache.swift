import Foundation
import Support

/// A node's copy, in a directory, of a journal that it shares with others: the same records with the same digests in
/// the same order, and snapshots of its own. It may lack the newest records; nothing waits for it, and no response
/// depends on it.
///
/// One thread makes the cache, if there is none yet, and writes it. Only `state` changes, under its lock, which is held
/// only briefly.
package final class JournalCache: Sendable {
  /// Makes a cache that holds everything up to the end of a journal.
  package typealias Making = @Sendable (_ origin: any SharedJournal) throws -> SQLiteJournal

  private struct State {
    var journal: SQLiteJournal?
    /// The reason why the cache cannot be written, or is no longer written; nil if it is written.
    var failure: String?
    var note: (@Sendable (String?) -> Void)?
    /// True if the cache was discarded.
    var isGivenUp = false
    var isStopped = false
    var isRunning = false
  }

  private let making: Making?
  private let state: Locked<State>
  /// Ends a pause early.
  private let stopping = DispatchSemaphore(value: 0)
  private let ended = DispatchSemaphore(value: 0)

  /// The durability of the cache: an occasional sync, on a thread of its own.
  package static let durability = SQLiteJournal.Durability.relaxed(milliseconds: 1_000)
  /// The limits of the records taken over at a time.
  private static let chunkRecords = 4_096
  private static let chunkBytes = 8 << 20
  /// The pause between two reads, so that the records of a busy journal are taken over together.
  private static let pause = DispatchTimeInterval.milliseconds(50)
  /// The pause after a failed read.
  private static let failurePause = DispatchTimeInterval.seconds(1)
  /// The pause after a failed attempt to make the cache.
  private static let makingPause = DispatchTimeInterval.seconds(10)

  /// Creates a cache from an existing journal.
  package init(_ journal: SQLiteJournal) {
    making = nil
    state = Locked(State(journal: journal))
  }

  /// Creates a cache that its thread makes by calling `making`.
  package init(making: @escaping Making) {
    self.making = making
    state = Locked(State())
  }

  /// The journal of the cache; nil if it has not been made yet, or was discarded.
  package var journal: SQLiteJournal? { state.withLock { $0.isGivenUp ? nil : $0.journal } }

  /// Calls `note` with the reason when the cache cannot be written, and with nil when it can be written again.
  package func whenChanged(_ note: @escaping @Sendable (String?) -> Void) {
    let failure = state.withLock { state in
      state.note = note
      return state.failure
    }
    if let failure { note(failure) }
  }

  /// Discards the cache because it differs from the journal or is damaged, so that the next start makes a new one.
  package func giveUp(_ reason: String) {
    let journal = state.withLock { state in
      defer { state.isGivenUp = true }
      return state.isGivenUp ? nil : state.journal
    }
    guard let journal else { return }
    note(reason, isFinal: true)
    journal.discard()
  }

  // MARK: Records and revocations

  /// Takes over the records that a journal has beyond the cache now. Throws `refused` if the journal does not respond,
  /// `compacted` if the records that follow are gone, and `damaged` if the journal has a different history.
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
      place: journal.directory ?? "the cache", reason: "revision \(newest) differs from the journal's")
    giveUp("\(error)")
    throw error
  }

  /// Replaces the cache's revocations by `revocations`.
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

  /// Makes the cache if necessary, and takes over new records until `stop`. Calls `whenMade` once the cache exists.
  func follow(_ origin: any SharedJournal, _ whenMade: @escaping @Sendable (SQLiteJournal) -> Void) {
    let isFirst = state.withLock { state in
      guard !state.isRunning, !state.isStopped else { return false }
      state.isRunning = true
      return true
    }
    guard isFirst else { return }
    Thread.detachNewThread { [self, weak origin] in
      var isTold = false
      while !isFinished, let origin {
        guard let journal = journal ?? made(of: origin) else { continue }
        if !isTold { whenMade(journal) }
        isTold = true
        follow(on: origin, journal)
      }
      ended.signal()
    }
  }

  private var isFinished: Bool { state.withLock { $0.isStopped || $0.isGivenUp } }

  private func made(of origin: any SharedJournal) -> SQLiteJournal? {
    guard let making else { return nil }
    do {
      let journal = try making(origin)
      state.withLock { $0.journal = journal }
      if let revocations = try? origin.revocations() { try keep(revocations) }
      return journal
    } catch {
      if !isFinished { note("\(error)") }
      pause(Self.makingPause)
      return nil
    }
  }

  /// Takes over the next records, if any arrive within a second, and pauses.
  private func follow(on origin: any SharedJournal, _ journal: SQLiteJournal) {
    let records: [JournalRecord]
    do throws(JournalError) {
      records = try origin.records(
        after: journal.bounds.last, limit: Self.chunkRecords, bytes: Self.chunkBytes, waiting: .seconds(1))
    } catch {
      // If the journal does not respond or has ended, it reports that itself.
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
    if !isFinished { _ = stopping.wait(timeout: .now() + time) }
  }

  /// Records why the cache cannot be written, or nil if it can. A cache that was given up keeps its final reason,
  /// whatever its thread is just doing.
  private func note(_ failure: String?, isFinal: Bool = false) {
    let note = state.withLock { state -> (@Sendable (String?) -> Void)? in
      guard isFinal || !state.isGivenUp else { return nil }
      defer { state.failure = failure }
      return isFinal || (state.failure == nil) != (failure == nil) ? state.note : nil
    }
    note?(failure)
  }

  /// Stops the thread and closes the cache, after adding the recent records that are available without contacting the
  /// shared storage. Called when the journal is closed.
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
