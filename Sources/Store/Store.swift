import Dispatch
import Glibc
package import KeyValueModel
import KeyValueObserving
package import Support
import Synchronization

/// The single writer, and what it has published.
///
/// Mutable state and who guards it: `queue` holds writes that wait, under its lock; `writing` belongs to whichever
/// block runs on the serial `writer` queue, and its lock is never waited for; `publication` holds what is published
/// together with its observers, under its lock; `latest` is the published state once more, for readers, which must not
/// wait until all observers have been notified; `currentCondition` says whether it can be written. Locks are taken in
/// this order: writing, publication, latest. `queue` and `currentCondition` are never held with another.
package final class Store: Sendable {
  /// What becomes of a write: called on the writer right after the transaction was applied or refused, with the state
  /// as this transaction left it and its revision. Gives what is to be done once the commit is durable and published,
  /// or has come to nothing because the journal could not take it.
  package typealias Conclusion =
    @Sendable (
      _ outcome: Result<Commit, ModelError>, _ state: borrowing ModelState, _ revision: Revision
    ) -> @Sendable (StoreUnavailable?) -> Void

  /// What is to be kept with a commit, in the journal; called on the writer with the state as the commit left it.
  package typealias Attachment = @Sendable (_ commit: Commit, _ state: borrowing ModelState) -> [UInt8]

  /// Asked on the writer before a write is carried out, where the journal is shared: where another node has carried
  /// out the same request meanwhile, gives what is to be done in place of the write.
  package typealias Precedent = @Sendable () -> (@Sendable (StoreUnavailable?) -> Void)?

  /// Called on the writer in place of what a conclusion gives, where other nodes were first several times: the write is
  /// not carried out, and goes back to who has handed it over, who may know a better node.
  package typealias GivingBack = @Sendable () -> Void

  /// What the writer has.
  struct Writing {
    var model: Model
    /// When the journal may be asked to read itself back again.
    var nextRecovery = ContinuousClock.now
    /// The bytes of the batch that the journal refused last.
    var refusedBytes = 0
    /// What the last batch was like, to tell how many may come for the next.
    var patience = WriterPatience()
    /// By how much clients have made the objects grow.
    var growth: ClientGrowth
  }

  /// Whether the store can be read and written.
  package enum Condition: Hashable, Sendable {
    /// It has not read its journal yet.
    case recovering(RecoveryProgress)
    /// All is well.
    case serving
    /// It can be read; what was written last was refused, for this reason.
    case unavailable(String)
  }

  /// What the objects are.
  package let schema: Schema
  /// Where every commit is written down.
  package let journal: any TransactionJournal
  /// The random word that tells this store's cursors from those of any other. A journal keeps its epoch while it is
  /// open.
  package let epoch: String
  /// The journal, where other nodes append to it too.
  let shared: (any SharedJournal)?
  /// How often a batch was judged anew because another node was first.
  let overtaken = Atomic(0)
  /// Told what other nodes have kept with their commits; nothing before `recover`.
  let restoring = Locked<KeptAction<[StoredAttachment], Void>?>(nil)
  /// Asked what is still of use of what was kept with commits up to a revision; nothing before `keepAttachments`.
  private let keeping = Locked<KeptAction<Revision, [StoredAttachment]>?>(nil)

  package let limits: StoreLimits
  /// The writes that were refused because they would have had the objects take more memory than they may.
  package let growthRefusals: GrowthRefusals
  /// How long transactions took from being handed over to being published.
  package let commitDurations = DurationHistogram()
  /// How long the journal took to write a batch of them down.
  package let syncDurations = DurationHistogram()
  /// The clock that commits are dated by.
  let clock: CommitClock
  let queue: Locked<WriteQueue<StoreSubmission>>
  let writer = DispatchQueue(label: "keyway.writer", qos: .userInitiated)
  /// Frees what would hold up the writer.
  private let freeing = DispatchQueue(label: "keyway.freeing", qos: .utility)
  let writing: Locked<Writing>
  private let publication: Locked<Publication>
  private let latest: LatestSnapshot
  let currentCondition: Locked<Condition>
  /// Tells the operator.
  let notify: @Sendable (StoreNotice) -> Void
  let keeper: JournalKeeper
  /// The same for what is kept of a journal that is shared.
  let cacheKeeper = Locked<JournalKeeper?>(nil)
  let leases: LeaseKeeper
  private let publisher: any StorePublisher
  /// What was worked out for resuming clients. Taken with no other lock but the publication's.
  let missedCommits: Locked<BoundedCache<Revision, MissedCommits>>
  let resumedQueries: Locked<BoundedCache<ResumedQueryKey, PreparedQuery>>

  /// A store without objects over a journal, which `recover` reads. `streams` says which streams are this node's; all
  /// without it. `publisher` is told of each batch of commits; `now` gives milliseconds since 1970, and `elapsed` those
  /// of a clock that only grows, by which leases run; `notify` is told what an operator should know, once when that
  /// begins and once when it ends, from any thread, and must not call the store.
  package init(
    schema: Schema, journal: any TransactionJournal, limits: StoreLimits, publisher: any StorePublisher,
    streams: StreamNumbers? = nil,
    now: @escaping @Sendable () -> Int64, elapsed: @escaping @Sendable () -> UInt64 = ElapsedTime.milliseconds,
    notify: @escaping @Sendable (StoreNotice) -> Void = { _ in }
  ) {
    self.schema = schema
    self.journal = journal
    epoch = journal.identity.epoch
    shared = journal as? any SharedJournal
    self.limits = limits
    self.publisher = publisher
    clock = CommitClock(wall: now, elapsed: elapsed)
    self.notify = notify
    growthRefusals = GrowthRefusals { notify(.refusesGrowth) }
    let model = Model(schema: schema)
    let history = History(limits: limits)
    let snapshot = Snapshot(state: model.state, revision: model.revision, after: history)
    queue = Locked(WriteQueue(limits))
    let growth = ClientGrowth(limit: limits.growthPerClient, refusals: growthRefusals)
    writing = Locked(Writing(model: model, growth: growth))
    publication = Locked(Publication(snapshot: snapshot, history: history, limits: limits))
    latest = LatestSnapshot(snapshot)
    currentCondition = Locked(journal.bounds.last == 0 ? .serving : .recovering(RecoveryProgress()))
    keeper = JournalKeeper(journal: journal, limits: limits) { failure in
      notify(failure.map { .snapshotFailed($0) } ?? .snapshotWritten)
    }
    shared?.cache?.whenChanged { [notify] in notify($0.map { .cacheFailed($0) } ?? .cacheWritten) }
    leases = LeaseKeeper(streams: streams, elapsed: elapsed)
    missedCommits = Locked(BoundedCache(weightLimit: limits.resumedRevisions))
    resumedQueries = Locked(BoundedCache(weightLimit: limits.resumedRows))
  }

  /// An empty store in memory.
  package convenience init(schema: Schema, epoch: String, limits: StoreLimits, publisher: any StorePublisher) {
    self.init(
      schema: schema, journal: MemoryJournal(identity: JournalIdentity(epoch: epoch, schema: "")), limits: limits,
      publisher: publisher, now: { Int64(time(nil)) * 1000 })
  }

  /// From now on snapshots have what `kept` says is still of use of what was kept with commits up to a revision, oldest
  /// first: it is gone with the records otherwise. Called on a thread that may wait; must not call the store.
  package func keepAttachments(_ kept: @escaping @Sendable (Revision) -> [StoredAttachment]) {
    keeping.withLock { $0 = KeptAction(kept) }
  }

  /// What is still of use of what was kept with commits up to a revision, oldest first. On a thread that may wait.
  package func attachments(upTo revision: Revision) -> [StoredAttachment] { keeping.withLock { $0 }?(revision) ?? [] }

  /// The published state. Never waits for a write or for observers being told.
  package var snapshot: Snapshot { latest.snapshot }

  /// How far it has come.
  package var revision: Revision { latest.revision }

  /// Whether it can be read and written.
  package var condition: Condition { currentCondition.withLock { $0 } }

  /// How many writes wait.
  package var queuedWrites: Int { queue.withLock { $0.count } }

  /// Runs `body` while nothing can be published: what it reads and what it registers belong to one revision. Keep it
  /// short; the writer waits. Must not be nested.
  package func withPublication<Result, Failure: Error>(
    _ body: (inout Publication) throws(Failure) -> sending Result
  ) throws(Failure) -> sending Result {
    try publication.withLock { publication throws(Failure) in
      defer { free(publication.queries.takeForgotten()) }
      return try body(&publication)
    }
  }

  /// Who asks for what the store does by itself.
  package static var ownClient: Int { 0 }

  /// Hands a transaction to the writer. False where too many wait already, of all clients or of this one: then nothing
  /// happens and `conclude` is never called. Otherwise it is called once, and what it gives is too; where the journal
  /// is shared and another node was first, it is called again, and only what it gives at last is, or `giveBack`. What
  /// `attachment` gives is kept with the commit. `limits` are the store's own unless others are given. `client` is a
  /// number for who asks: those of different numbers take turns, in which `bytes`, about what it takes, counts.
  package func submit(
    _ transaction: Transaction, of client: Int = ownClient, bytes: Int = 0, limits: TransactionLimits? = nil,
    attachment: Attachment? = nil, precedent: Precedent? = nil, giveBack: GivingBack? = nil,
    willBegin: (@Sendable () -> Void)? = nil, conclude: @escaping Conclusion
  ) -> Bool {
    let submission = StoreSubmission(
      transaction: transaction, client: client, limits: limits ?? self.limits.transaction, attachment: attachment,
      precedent: precedent, giveBack: giveBack, willBegin: willBegin, conclude: conclude)
    enum Entry { case refused, queued, first }
    let entry = queue.withLock { queue -> Entry in
      guard queue.enqueue(submission, bytes: bytes, of: client) else { return .refused }
      if queue.isScheduled { return .queued }
      queue.isScheduled = true
      return .first
    }
    if entry == .first { writer.async { self.writeAll() } }
    return entry != .refused
  }

  /// Shows durable commits to readers and observers. `times` says when each of them was made. Returns how many steps
  /// each took that observers and live queries were notified of.
  @discardableResult
  func publish(_ commits: [Commit], at times: [Int64], _ state: ModelState, _ revision: Revision) -> [Int] {
    let (dropped, steps) = publication.withLock { publication in
      var dropped: [any Sendable] = []
      for (commit, milliseconds) in zip(commits, times) {
        dropped += publication.history.append(commit, milliseconds: milliseconds)
      }
      latest.show(publication.advance(to: state, revision))
      forgetResumed(at: revision)
      var queryEvents: [QueryEvent] = []
      var steps = publication.queries.notify(commits, of: state) { queryEvents.append($0) }
      let settled = publisher.publish(queryEvents, upTo: revision) { receive in
        let budget = publication.observers.notify(
          commits, of: state, changesPerObserver: limits.changesPerObserver,
          bytesPerObserver: limits.bytesPerObserver,
          budget: ObservationBudget.publishing(steps: limits.observationCommitSteps), receive: receive)
        for (place, count) in budget.stepsOfCommits.enumerated() { steps[place] += count }
      }
      publication.queries.settle(upTo: settled)
      free(publication.queries.takeForgotten())
      return (dropped, steps)
    }
    // Hundreds of transactions of a thousand objects each may leave the history within a moment.
    free(dropped.isEmpty ? nil : dropped)
    return steps
  }

  /// Lets go of something large where nobody waits for it.
  private func free(_ garbage: (any Sendable)?) {
    if let garbage { freeing.async { withExtendedLifetime(garbage) {} } }
  }

  /// Publishes what was recovered. There is no observer yet.
  func adopt(_ model: Model, _ history: History) {
    writing.withLock { $0.model = model }
    if let time = history.lastTime { clock.advance(to: time) }
    // A little earlier than their clients may come back at the latest: what is late is deleted within a second, and
    // where another node is to do that, this one leaves it time to.
    let early = shared == nil ? 0 : Self.lateMilliseconds
    leases.restore(model.state, wall: clock.now(), grace: streamGrace - min(streamGrace, early))
    publication.withLock { publication in
      let snapshot = Snapshot(state: model.state, revision: model.revision, after: history)
      publication = Publication(snapshot: snapshot, history: history, limits: limits)
      latest.show(snapshot)
      // Before the first subscription: heartbeats name this state, although nothing was committed yet.
      publication.queries.settle(upTo: publisher.publish([], upTo: snapshot.revision) { _ in })
    }
    currentCondition.withLock { $0 = .serving }
  }

  /// Drops from the history what has become too old.
  func trimHistory() {
    // So that all nodes agree on what can be resumed, the times of the records alone decide where there are several.
    guard shared == nil else { return }
    publication.withLock { publication in
      guard publication.history.trim(at: clock.now()) else { return }
      latest.show(publication.advance(to: publication.snapshot.state, publication.snapshot.revision))
    }
  }
}
