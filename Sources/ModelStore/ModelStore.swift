internal import Dispatch
package import KeyValueModel
internal import KeyValueObserving
internal import Locking

/// The single writer, and what it has published.
///
/// Mutable state and who guards it: `queue` holds writes that wait, under its lock; `model` belongs to whichever block
/// runs on the serial `writer` queue, and its lock is never waited for; `publication` holds what is published together
/// with who is told, under its lock; `latest` is the published state once more, for readers, who must not wait until
/// everybody has been told. Locks are taken in this order: model, publication, latest. `queue` is never held with another.
package final class ModelStore: Sendable {
  /// What becomes of a write: called on the writer right after the transaction was applied or refused, with the state
  /// as this transaction left it. Gives what is to be done once the commit is durable and published.
  package typealias Conclusion =
    @Sendable (
      _ outcome: Result<Commit, ModelError>, _ state: borrowing ModelState
    ) -> @Sendable () -> Void

  private struct Submission: Sendable {
    let transaction: Transaction
    let conclude: Conclusion
  }

  private struct Queue {
    var waiting: [Submission] = []
    var isScheduled = false
  }

  /// The random word that tells this store's cursors from those of any other.
  package let epoch: String
  /// What the objects are.
  package let schema: Schema

  let limits: StoreLimits
  private let queue = Locked(Queue())
  private let writer = DispatchQueue(label: "keyway.writer", qos: .userInitiated)
  private let model: Locked<Model>
  private let publication: Locked<Publication>
  private let latest: Locked<Snapshot>
  private let publisher: any StorePublisher

  /// An empty store. `publisher` is told of each batch of commits.
  package init(schema: Schema, epoch: String, limits: StoreLimits, publisher: any StorePublisher) {
    self.epoch = epoch
    self.schema = schema
    self.limits = limits
    self.publisher = publisher
    let model = Model(schema: schema)
    let snapshot = Snapshot(state: model.state, revision: model.revision, oldestResumable: model.revision)
    self.model = Locked(model)
    publication = Locked(Publication(snapshot: snapshot, history: History(limits: limits), limits: limits))
    latest = Locked(snapshot)
  }

  /// The published state. Never waits for a write or for observers being told.
  package var snapshot: Snapshot { latest.withLock { $0 } }

  /// How many writes wait.
  package var queuedWrites: Int { queue.withLock { $0.waiting.count } }

  /// Runs `body` while nothing can be published: what it reads and what it registers belong to one revision. Keep it
  /// short; the writer waits. Must not be nested.
  package func withPublication<Result, Failure: Error>(
    _ body: (inout Publication) throws(Failure) -> sending Result
  ) throws(Failure) -> sending Result {
    try publication.withLock { publication throws(Failure) in try body(&publication) }
  }

  /// Hands a transaction to the writer. False where too many wait already: then nothing happens and `conclude` is never
  /// called. Otherwise it is called exactly once, and what it gives is too.
  package func submit(_ transaction: Transaction, conclude: @escaping Conclusion) -> Bool {
    enum Admission { case refused, queued, first }
    let admission = queue.withLock { queue -> Admission in
      guard queue.waiting.count < limits.queuedWrites else { return .refused }
      queue.waiting.append(Submission(transaction: transaction, conclude: conclude))
      if queue.isScheduled { return .queued }
      queue.isScheduled = true
      return .first
    }
    if admission == .first { writer.async { self.writeAll() } }
    return admission != .refused
  }

  /// Takes everything that waits as one batch, until nothing does.
  private func writeAll() {
    while true {
      let batch = queue.withLock { queue -> [Submission] in
        defer { queue.waiting = [] }
        if queue.waiting.isEmpty { queue.isScheduled = false }
        return queue.waiting
      }
      if batch.isEmpty { return }
      write(batch)
    }
  }

  private func write(_ batch: [Submission]) {
    let actions = model.withLock { model in
      var commits: [Commit] = []
      let actions = batch.map { submission in
        let outcome = Result { () throws(ModelError) in try model.commit(submission.transaction) }
        if case .success(let commit) = outcome { commits.append(commit) }
        return submission.conclude(outcome, model.state)
      }
      publish(commits, model.state, model.revision)
      return actions
    }
    for action in actions { action() }
  }

  private func publish(_ commits: [Commit], _ state: ModelState, _ revision: Revision) {
    guard !commits.isEmpty else { return }
    publication.withLock { publication in
      for commit in commits { publication.history.append(commit) }
      let snapshot = Snapshot(
        state: state, revision: revision, oldestResumable: publication.history.oldestResumable(at: revision))
      publication.snapshot = snapshot
      latest.withLock { $0 = snapshot }
      var events: [ObserverEvent] = []
      publication.observers.tell(
        commits, of: snapshot.state, changesPerObserver: limits.changesPerObserver
      ) { events.append($0) }
      var queryEvents: [QueryEvent] = []
      publication.queries.tell(commits, of: snapshot.state) { queryEvents.append($0) }
      publication.queries.settle(upTo: publisher.publish(events, queryEvents, upTo: snapshot.revision))
    }
  }
}
