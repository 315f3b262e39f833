import Glibc
import KeyValueModel
import Support

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

/// The writes of a batch that were applied and are still to be written down.
struct AppliedWrites {
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

/// A write that waits for the writer.
struct StoreSubmission: Sendable {
  let transaction: Transaction
  let client: Int
  let limits: TransactionLimits
  let attachment: Store.Attachment?
  let precedent: Store.Precedent?
  let giveBack: Store.GivingBack?
  /// Called on the writer just before the transaction is applied.
  let willBegin: (@Sendable () -> Void)?
  let conclude: Store.Conclusion
  /// Since it was handed over.
  let watch = Stopwatch()
}

/// For how long a batch is judged anew because other nodes were first. They pass their writes on to the one that was
/// first, so that it seldom takes more than a few attempts.
struct Overtaking {
  private let end = ContinuousClock.now + .seconds(5)
  /// How often others were first.
  private(set) var count = 0

  /// After so many attempts, what can be carried out elsewhere is given back: the node that was first appends again at
  /// once, and this one is behind by as long as it takes to read what was appended.
  private static let attemptsBeforeGivingBack = 2
  /// After so many attempts there is a pause before the next.
  private static let attemptsWithoutPause = 4
  /// The longest pause, in microseconds. It is random, so that those who meet do not meet again.
  private static let longestPause: UInt32 = 20_000

  /// Gives back those of a batch that can be, where it is time to.
  func giveBack(_ waiting: inout ArraySlice<StoreSubmission>) {
    guard count >= Self.attemptsBeforeGivingBack else { return }
    for submission in waiting { submission.giveBack?() }
    waiting.removeAll { $0.giveBack != nil }
  }

  /// Counts one more, and pauses where there were several; false where it is time to give up.
  mutating func goesOn() -> Bool {
    count += 1
    if count > Self.attemptsWithoutPause { usleep(.random(in: 0...Self.longestPause)) }
    return .now < end
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
