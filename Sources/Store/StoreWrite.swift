import Glibc
package import KeyValueModel
import Support

/// A transaction for the store, with all that belongs to it: see `Store.submit`.
///
/// The writer alone calls the methods, one after the other. In an attempt, under its lock, it calls `begin`,
/// `attachment` if the transaction was applied, and `conclude`; in the end `finish`, without a lock. Where the journal
/// is shared and another node appended first, there is another attempt, and what was concluded before is void. A write
/// that the journal leaves no room for is concluded as refused without an attempt.
package protocol StoreWrite: AnyObject, Sendable {
  /// The transaction.
  var transaction: Transaction { get }
  /// The number of the client that asks: clients take turns.
  var client: Int { get }
  /// The bytes that count in these turns, about as many as the write takes.
  var byteCount: Int { get }
  /// The limits of the transaction; nil for the store's own.
  var limits: TransactionLimits? { get }

  /// Begins an attempt, right before the transaction is applied.
  func begin()
  /// Returns the bytes that the journal keeps with the commit, if any. The state is as the commit left it.
  func attachment(to commit: Commit, _ state: borrowing ModelState) -> [UInt8]?
  /// Takes in the outcome right after the transaction was applied or refused, with the state that it left, and the
  /// revision of that.
  func conclude(_ outcome: Result<Commit, ModelError>, _ state: borrowing ModelState, _ revision: Revision)
  /// Ends the write, once: the batch is durable and published, or has come to nothing because the journal could not
  /// take it.
  func finish(_ failure: StoreUnavailable?)

  /// Takes over the answer of another node that has carried out the same request meanwhile; false if none has. Called
  /// after `begin` where the journal is shared. If true, the transaction is not applied, and only `finish` follows.
  func takePrecedent() -> Bool
  /// Gives the write back to its sender, who may know a better node, since other nodes were first several times. If
  /// true, the write is not carried out, and no method of it is called any more; if false, it is tried again.
  func giveBack() -> Bool
}

/// A plain write has the limits of all, keeps nothing with its commit, and is a matter of this node alone.
extension StoreWrite {
  /// Nil.
  package var limits: TransactionLimits? { nil }
  /// Does nothing.
  package func begin() {}
  /// Returns nil.
  package func attachment(to commit: Commit, _ state: borrowing ModelState) -> [UInt8]? { nil }
  /// Returns false.
  package func takePrecedent() -> Bool { false }
  /// Returns false.
  package func giveBack() -> Bool { false }
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
  /// Since it was handed over.
  let watch = Stopwatch()
}

/// An attempt to commit a batch of writes.
struct WriteAttempt: Sendable {
  private let store: Store
  /// The writes that were judged, in order, each of which is told what came of the attempt.
  private var judged: [any StoreWrite] = []
  /// Those of them that were applied, and are to be written down.
  private(set) var applied: [QueuedWrite] = []
  private(set) var commits: [Commit] = []
  private(set) var records: [JournalRecord] = []
  private(set) var bytes = 0
  /// True if a write was refused.
  private(set) var hasRefused = false
  var failure: StoreUnavailable?
  /// True if another node was first: what it left was read, and the same writes have to be judged by that.
  var isOvertaken = false

  /// An attempt of a store, without writes.
  init(of store: Store) { self.store = store }

  /// Refuses writes for which the journal leaves no room, by the state that is published.
  init(refusing queued: some Sequence<QueuedWrite>, of store: Store, because reason: String) {
    self.init(of: store)
    failure = StoreUnavailable(reason: reason)
    judged = queued.map(\.write)
    let snapshot = store.snapshot
    for write in judged {
      write.conclude(.failure(ModelError(.staleRevision, reason)), snapshot.state, snapshot.revision)
    }
  }

  /// Applies at most `limit` writes that fit into a batch to the model, and takes them off `rest`. Returns the times
  /// that they took, in nanoseconds.
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

  /// Tells the writes what came of it.
  func finish() {
    for write in judged { write.finish(failure) }
  }
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
  func giveBack(_ waiting: inout ArraySlice<QueuedWrite>) {
    guard count >= Self.attemptsBeforeGivingBack else { return }
    waiting = waiting.filter { !$0.write.giveBack() }[...]
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
