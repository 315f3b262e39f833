import Glibc
package import KeyValueModel
import Support

/// A transaction for the store, together with its attachment and its callbacks: see `Store.submit`.
///
/// Only the writer calls the methods, one after another. In an attempt, under its lock, it calls `begin`, `attachment`
/// if the transaction was applied, and `conclude`; at the end it calls `finish`, without a lock. If the journal is
/// shared and another node appended first, there is another attempt, which voids the previous conclusion. If there is
/// no more time for an attempt, the write is concluded as refused without one.
package protocol StoreWrite: AnyObject, Sendable {
  /// The transaction.
  var transaction: Transaction { get }
  /// The number of the client that made the write: clients are served round-robin.
  var client: Int { get }
  /// The size by which the write counts in the round-robin, in bytes: about as many as the write takes.
  var byteCount: Int { get }
  /// The limits of the transaction; nil for the store's limits.
  var limits: TransactionLimits? { get }

  /// Begins an attempt, immediately before the transaction is applied.
  func begin()
  /// Returns the attachment that the journal stores with the commit, if any. `state` is the state after the commit.
  func attachment(to commit: Commit, _ state: borrowing ModelState) -> [UInt8]?
  /// Receives the outcome immediately after the transaction was applied or refused, with the resulting state and its
  /// revision.
  func conclude(_ outcome: Result<Commit, ModelError>, _ state: borrowing ModelState, _ revision: Revision)
  /// Finishes the write, once: the batch is durable and published, or has failed because the journal could not take it.
  func finish(_ failure: StoreUnavailable?)

  /// Adopts the response of another node that has carried out the same request in the meantime; returns false if none
  /// has. Called after `begin` if the journal is shared. If true, the transaction is not applied, and only `finish`
  /// follows.
  func takePrecedent() -> Bool
  /// Hands the write back to its sender, which may know a better node, because other nodes appended first several
  /// times. If true, the write is not carried out, and none of its methods is called again; if false, it is retried.
  func handBack() -> Bool
}

/// The defaults of a plain write: the store's limits, no attachment, and no other node involved.
extension StoreWrite {
  /// Always nil.
  package var limits: TransactionLimits? { nil }
  /// Does nothing.
  package func begin() {}
  /// Returns nil.
  package func attachment(to commit: Commit, _ state: borrowing ModelState) -> [UInt8]? { nil }
  /// Returns false.
  package func takePrecedent() -> Bool { false }
  /// Returns false.
  package func handBack() -> Bool { false }
}

/// A write with closures for its attachment and its end.
final class PlainWrite: StoreWrite {
  let transaction: Transaction
  let client: Int
  let byteCount: Int
  let limits: TransactionLimits?
  private let attaching: (@Sendable (Commit) -> [UInt8])?
  private let finishing: @Sendable (Result<Commit, ModelError>, Revision, StoreUnavailable?) -> Void
  private let concluded = Locked<(outcome: Result<Commit, ModelError>, revision: Revision)?>(nil)

  init(
    _ transaction: Transaction, of client: Int, bytes: Int, limits: TransactionLimits?,
    attachment: (@Sendable (Commit) -> [UInt8])?,
    finish: @escaping @Sendable (Result<Commit, ModelError>, Revision, StoreUnavailable?) -> Void
  ) {
    (self.transaction, self.client, byteCount, self.limits) = (transaction, client, bytes, limits)
    (attaching, finishing) = (attachment, finish)
  }

  func attachment(to commit: Commit, _ state: borrowing ModelState) -> [UInt8]? { attaching?(commit) }

  func conclude(_ outcome: Result<Commit, ModelError>, _ state: borrowing ModelState, _ revision: Revision) {
    concluded.withLock { $0 = (outcome, revision) }
  }

  func finish(_ failure: StoreUnavailable?) {
    guard let (outcome, revision) = concluded.withLock({ $0 }) else {
      return assertionFailure("the write was not concluded")
    }
    finishing(outcome, revision, failure)
  }
}

// MARK: - On the writer

/// A write that waits for the writer.
struct QueuedWrite: Sendable {
  let write: any StoreWrite
  /// The time since it was submitted.
  let watch = Stopwatch()
}

/// An attempt to commit a batch of writes.
struct WriteAttempt: Sendable {
  private let store: Store
  /// The writes that were applied or refused, in order, all of which receive the outcome of the attempt.
  private var judged: [any StoreWrite] = []
  /// The writes that were applied and are to be recorded.
  private(set) var applied: [QueuedWrite] = []
  private(set) var commits: [Commit] = []
  private(set) var records: [JournalRecord] = []
  private(set) var bytes = 0
  /// True if a write was refused.
  private(set) var hasRefused = false
  var failure: StoreUnavailable?
  /// True if another node appended first: its records were read, and the same writes have to be applied again on top.
  var isOvertaken = false

  /// Creates an attempt of a store, without writes.
  init(of store: Store) { self.store = store }

  /// Creates an attempt that refuses writes for `reason`, based on the published state.
  init(refusing queued: some Sequence<QueuedWrite>, of store: Store, because reason: String) {
    self.init(of: store)
    failure = StoreUnavailable(reason: reason)
    judged = queued.map(\.write)
    let snapshot = store.snapshot
    for write in judged {
      write.conclude(.failure(ModelError(.staleRevision, reason)), snapshot.state, snapshot.revision)
    }
  }

  /// Applies at most `limit` writes that fit into a batch to the model, and removes them from `rest`. Returns the time
  /// that each took, in nanoseconds.
  mutating func take(
    from rest: inout ArraySlice<QueuedWrite>, limit: Int, _ writing: inout Store.Writing,
    _ admission: inout LeaseAdmission
  ) -> [Int] {
    let milliseconds = store.clock.now()
    var durations: [Int] = []
    while bytes < store.limits.batchBytes, judged.count < limit, let queued = rest.popFirst() {
      let watch = Stopwatch()
      queued.write.begin()
      if store.shared == nil || !queued.write.takePrecedent() {
        let outcome = apply(queued, at: milliseconds, to: &writing, &admission)
        queued.write.conclude(outcome, writing.model.state, writing.model.revision)
      }
      judged.append(queued.write)
      durations.append(Int(watch.nanoseconds))
    }
    return durations
  }

  private mutating func apply(
    _ queued: QueuedWrite, at milliseconds: Int64, to writing: inout Store.Writing, _ admission: inout LeaseAdmission
  ) -> Result<Commit, ModelError> {
    let (write, transaction, client) = (queued.write, queued.write.transaction, queued.write.client)
    do throws(ModelError) {
      let newLeases = try admission.check(transaction, of: client, in: writing.model.state)
      let commit = try writing.growth.commit(
        transaction, of: client, limits: write.limits ?? store.limits.transaction, to: &writing.model, at: milliseconds)
      admission.add(newLeases, of: client)
      let record = JournalRecord(
        transaction, revision: commit.revision, milliseconds: milliseconds,
        attachment: write.attachment(to: commit, writing.model.state))
      applied.append(queued)
      commits.append(commit)
      records.append(record)
      bytes += record.body.count
      return .success(commit)
    } catch {
      hasRefused = true
      return .failure(error)
    }
  }

  /// Reports the outcome to the writes.
  func finish() {
    for write in judged { write.finish(failure) }
  }
}

/// The retries of a batch because other nodes appended first, with their deadline. Nodes forward their writes to the
/// one that appended first, so that it seldom takes more than a few attempts.
struct Overtaking {
  private let end = ContinuousClock.now + .seconds(5)
  /// The number of times others appended first.
  private(set) var count = 0

  /// The number of attempts after which writes that can be carried out elsewhere are handed back: the node that
  /// appended first appends again at once, while this one lags by the time that reading those records takes.
  private static let attemptsBeforeHandingBack = 2
  /// The number of attempts after which there is a pause before the next.
  private static let attemptsWithoutPause = 4
  /// The maximum pause, in microseconds. The pause is random, so that nodes that collide do not collide again.
  private static let longestPause: UInt32 = 20_000

  /// Hands back the writes that can be handed back, after the first attempts.
  func handBack(_ waiting: inout ArraySlice<QueuedWrite>) {
    guard count >= Self.attemptsBeforeHandingBack else { return }
    waiting = waiting.filter { !$0.write.handBack() }[...]
  }

  /// Counts one more attempt, and pauses after several. Returns false after the deadline.
  mutating func goesOn() -> Bool {
    count += 1
    if count > Self.attemptsWithoutPause { usleep(.random(in: 0...Self.longestPause)) }
    return .now < end
  }
}

/// The processor time that the writer spent on the writes of each client.
struct WriterTimes {
  private var nanoseconds: [Int: Int64] = [:]

  /// The times in microseconds.
  var microseconds: [Int: Int] { nanoseconds.mapValues { Int($0 / 1_000) } }

  /// Distributes the time that writes took together, one for each of `clients`, in proportion to their weights, or
  /// equally if all weights are 0.
  mutating func add(_ time: Int64, to clients: [Int], by weights: [Int]) {
    // Each weight counts one more, so that the sum is never 0.
    let total = zip(clients, weights).reduce(0) { $0 + $1.1 + 1 }
    for (client, weight) in zip(clients, weights) {
      nanoseconds[client, default: 0] += Int64(Double(time) * Double(weight + 1) / Double(total))
    }
  }
}
