import Dispatch
import KeyValueModel
import Support
import Synchronization

/// What the single writer does: it takes what waits by batches, applies each, writes down what it did with one sync,
/// and publishes it.
extension Store {
  /// Takes what waits by batches, until nothing does.
  func writeAll() {
    while true {
      writing.withLock { $0.patience }.wait { isSo in queue.withLock { isSo($0) } }
      let batch = queue.withLock { queue in
        let batch = queue.takeBatch()
        if batch.isEmpty { queue.isScheduled = false }
        return batch
      }
      if batch.isEmpty { return }
      var rest = batch[...]
      var times = WriterTimes()
      while !rest.isEmpty { write(&rest, &times) }
      queue.withLock { $0.charge(times.microseconds) }
      journal.maintain()
    }
  }

  /// Commits as much of `rest` as goes into one batch, and takes it off.
  private func write(_ rest: inout ArraySlice<StoreSubmission>, _ times: inout WriterTimes) {
    var waiting = rest
    var (overtaking, attempt) = (Overtaking(), self.attempt(&rest, limit: .max, &times))
    while attempt.isOvertaken {
      overtaken.wrappingAdd(1, ordering: .relaxed)
      let goesOn = overtaking.goesOn()
      if !isCaretaker { overtaking.giveBack(&waiting) }
      rest = waiting
      guard goesOn else {
        let first = rest.popFirst().map { [$0] } ?? []
        attempt = .refusing(first, snapshot, because: "other nodes write faster than this one can")
        break
      }
      attempt = self.attempt(&rest, limit: max(1, waiting.count >> min(overtaking.count, 20)), &times)
    }
    attempt.conclude()
    guard attempt.failure != nil, let shared, shared.silence >= WriteTime.silence else { return }
    // What waits has waited for as long as the attempt took, and may not do so again.
    let late = rest + queue.withLock { $0.takeAll() }
    rest = []
    WriteAttempt.refusing(late, snapshot, because: "the journal is out of reach; nothing was changed").conclude()
  }

  /// Applies writes, writes down what they did, and publishes it.
  private func attempt(
    _ rest: inout ArraySlice<StoreSubmission>, limit: Int, _ times: inout WriterTimes
  ) -> WriteAttempt {
    var attempt = WriteAttempt()
    writing.withLock { writing in
      var admission = leases.admission(limits)
      let base = writing.model.revision
      let (clients, processor) = (rest.map(\.client), ProcessorStopwatch())
      var applied = AppliedWrites(time: clock.now(), bytesLimit: limits.batchBytes, isShared: shared != nil)
      let durations = applied.take(from: &rest, limit: limit, &writing, &admission, &attempt.actions)
      times.add(processor.nanoseconds, to: clients, by: durations)
      writing.patience.lastBatchCount = applied.commits.count
      do throws(JournalError) {
        guard !applied.commits.isEmpty else {
          // A refusal is not given by a state that another node has left behind.
          if applied.hasRefused { try shared?.confirm(base) }
          return
        }
        let watch = Stopwatch()
        try append(applied.records, after: base, &writing)
        let nanoseconds = watch.nanoseconds
        syncDurations.record(nanoseconds: nanoseconds)
        writing.patience.lastSync = .nanoseconds(nanoseconds)
      } catch {
        // No reader has seen any of it: what is published is what was there before.
        undo(&writing)
        if isOvertaken(error, &writing) { return attempt.isOvertaken = true }
        writing.refusedBytes = applied.bytes
        becomeUnavailable(error)
        attempt.failure = StoreUnavailable(reason: journal.publicReason(error))
        return
      }
      becomeAvailable()
      writing.growth.keep()
      leases.note(applied.commits, of: admission.clients)
      let publishing = ProcessorStopwatch()
      let steps = publish(
        applied.commits, at: applied.records.map(\.milliseconds), writing.model.state, writing.model.revision)
      times.add(publishing.nanoseconds, to: applied.submissions.map(\.client), by: steps)
      for submission in applied.submissions { commitDurations.record(nanoseconds: submission.watch.nanoseconds) }
      noteWritten(records: applied.records.count, bytes: applied.bytes)
    }
    return attempt
  }

  /// Between two attempts to read a journal back that may have lost something.
  private static let recoveryInterval = Duration.seconds(1)

  /// Writes records down. Where the journal cannot be trusted, has it read itself back first.
  func append(
    _ records: [JournalRecord], after base: Revision, _ writing: inout Writing
  ) throws(JournalError) {
    do throws(JournalError) {
      try journal.append(records, after: base)
    } catch {
      // One that is shared has tried again itself as long as a write may take.
      guard case .untrusted = error, shared == nil, .now >= writing.nextRecovery else { throw error }
      writing.nextRecovery = .now + Self.recoveryInterval
      try journal.recover()
      do throws(JournalError) {
        try journal.append(records, after: base)
      } catch {
        // What may have reached the disk is refused to those who asked for it, so it must not be found at the next
        // start.
        if case .untrusted = error { try? journal.recover() }
        throw error
      }
      // The next failure is another one, and is undone at once.
      writing.nextRecovery = .now
    }
  }
}

/// What came of an attempt to commit a batch.
struct WriteAttempt {
  var actions: [@Sendable (StoreUnavailable?) -> Void] = []
  var failure: StoreUnavailable?
  /// True if another node was first: what it left was read, and the same writes have to be judged by that.
  var isOvertaken = false

  /// Refuses writes for which the journal leaves no room, by the state that is published.
  static func refusing(
    _ submissions: some Sequence<StoreSubmission>, _ snapshot: Snapshot, because reason: String
  ) -> WriteAttempt {
    let actions = submissions.map { submission in
      submission.conclude(.failure(ModelError(.staleRevision, reason)), snapshot.state, snapshot.revision)
    }
    return WriteAttempt(actions: actions, failure: StoreUnavailable(reason: reason))
  }

  /// Tells those who wrote what came of it.
  func conclude() {
    for action in actions { action(failure) }
  }
}

/// How long the writer had a processor for the writes of each client.
struct WriterTimes {
  private var nanoseconds: [Int: Int64] = [:]

  /// The times in microseconds.
  var microseconds: [Int: Int] { nanoseconds.mapValues { Int($0 / 1_000) } }

  /// Adds the time that writes took together, one of each of the clients, in proportion to their weights and equally
  /// where there are none.
  mutating func add(_ time: Int64, to clients: [Int], by weights: [Int]) {
    // A little more for each, so that there is something to divide by.
    let total = zip(clients, weights).reduce(0) { $0 + $1.1 + 1 }
    for (client, weight) in zip(clients, weights) {
      nanoseconds[client, default: 0] += Int64(Double(time) * Double(weight + 1) / Double(total))
    }
  }
}

/// The writes of a batch that were applied and are still to be written down.
private struct AppliedWrites {
  private(set) var commits: [Commit] = []
  private(set) var submissions: [StoreSubmission] = []
  private(set) var records: [JournalRecord] = []
  private(set) var bytes = 0
  /// True if a write was refused.
  private(set) var hasRefused = false
  private let milliseconds: Int64
  private let bytesLimit: Int
  private let isShared: Bool

  /// No writes yet, of a batch of at most so many bytes, that are made at a time. Other nodes may write too where the
  /// journal `isShared`.
  init(time milliseconds: Int64, bytesLimit: Int, isShared: Bool) {
    (self.milliseconds, self.bytesLimit, self.isShared) = (milliseconds, bytesLimit, isShared)
  }

  /// Applies at most `limit` writes that fit into the batch to the model, and takes them off `rest`. What is to be done
  /// about each once they are written down goes to `actions`. Returns how long each of them took, in nanoseconds.
  mutating func take(
    from rest: inout ArraySlice<StoreSubmission>, limit: Int, _ writing: inout Store.Writing,
    _ admission: inout LeaseAdmission, _ actions: inout [@Sendable (StoreUnavailable?) -> Void]
  ) -> [Int] {
    var durations: [Int] = []
    while let submission = rest.first, bytes < bytesLimit, actions.count < limit {
      rest.removeFirst()
      let watch = Stopwatch()
      submission.willBegin?()
      if isShared, let action = submission.precedent?() {
        actions.append(action)
      } else {
        let outcome = apply(submission, to: &writing, &admission)
        actions.append(submission.conclude(outcome, writing.model.state, writing.model.revision))
      }
      durations.append(Int(watch.nanoseconds))
    }
    return durations
  }

  private mutating func apply(
    _ submission: StoreSubmission, to writing: inout Store.Writing, _ admission: inout LeaseAdmission
  ) -> Result<Commit, ModelError> {
    do throws(ModelError) {
      let newLeases = try admission.check(submission.transaction, of: submission.client, in: writing.model.state)
      let commit = try writing.growth.commit(submission, to: &writing.model, at: milliseconds)
      admission.add(newLeases, of: submission.client)
      let record = JournalRecord(
        submission.transaction, revision: commit.revision, milliseconds: milliseconds,
        attachment: submission.attachment?(commit, writing.model.state))
      submissions.append(submission)
      commits.append(commit)
      records.append(record)
      bytes += record.body.count
      return .success(commit)
    } catch {
      hasRefused = true
      return .failure(error)
    }
  }
}
