import Dispatch
import Glibc
package import KeyValueModel
import KeyValueObserving
package import Support
import Synchronization

/// The single writer, and the state that it has published.
///
/// Mutable state and its protection: `queue` holds the waiting writes, under its lock; `writing` belongs to the block
/// that runs on the serial `writer` queue, so that its lock is never contended; `publication` holds the published state
/// with its observers, under its lock; `latest` holds the published state again, for readers, which must not wait until
/// all observers have been notified; `currentCondition` tells whether the store can be read and written. Locks are
/// taken in this order: writing, publication, latest. `queue` and `currentCondition` are never held together with
/// another lock.
package final class Store: Sendable {
  /// The state of the writer.
  struct Writing {
    var model: Model
    /// The time from which the journal may be read back again.
    var nextRecovery = ContinuousClock.now
    /// The size in bytes of the last batch that the journal refused.
    var refusedBytes = 0
    /// The size and the sync time of the last batch, from which the wait for more writes is derived.
    var batchDelay = BatchDelay()
    /// The bytes by which clients have made the objects grow.
    var growth: ClientGrowth
  }

  /// The ability of the store to be read and written.
  package enum Condition: Hashable, Sendable {
    /// The store is reading its journal.
    case recovering(RecoveryProgress)
    /// The store can be read and written.
    case serving
    /// The store can only be read; the last write was refused, for this reason.
    case unavailable(String)

    fileprivate var isRecovering: Bool { if case .recovering = self { true } else { false } }
  }

  /// The present ability of a store to be read and written. The answer to the question of every request, if the store
  /// still reads its journal, takes no lock.
  final class CurrentCondition: Sendable {
    private let condition: Locked<Condition>
    private let recovers: Atomic<Bool>

    init(_ condition: Condition) {
      self.condition = Locked(condition)
      recovers = Atomic(condition.isRecovering)
    }

    var isRecovering: Bool { recovers.load(ordering: .acquiring) }

    func withLock<Result>(_ body: (inout Condition) -> sending Result) -> sending Result {
      condition.withLock { condition in
        defer { recovers.store(condition.isRecovering, ordering: .releasing) }
        return body(&condition)
      }
    }
  }

  /// The schema of the objects.
  package let schema: Schema
  /// The journal that records every commit.
  package let journal: any TransactionJournal
  /// The random word that distinguishes this store's cursors from those of any other store. A journal keeps its epoch
  /// while it is open.
  package let epoch: String
  /// The journal, if other nodes append to it too; nil otherwise.
  let shared: (any SharedJournal)?
  /// The number of times a batch was retried because another node appended first.
  private let overtaken = Atomic(0)
  /// Receives the attachments that other nodes have stored with their commits; nil before `recover`.
  let restoring = Locked<KeptAction<[StoredAttachment], Void>?>(nil)
  /// Returns the attachments of commits up to a revision that are still in use; nil before `keepAttachments`.
  private let keeping = Locked<KeptAction<Revision, [StoredAttachment]>?>(nil)

  package let limits: StoreLimits
  /// The counts of writes that were refused because the objects would have taken more memory than the limits allow.
  package let growthRefusals: GrowthRefusals
  /// The durations of transactions from submission to publication.
  package let commitDurations = DurationHistogram()
  /// The durations of the journal's writes of a batch.
  package let syncDurations = DurationHistogram()
  /// The clock that commits are dated by.
  let clock: CommitClock
  private let queue: Locked<WriteQueue<QueuedWrite>>
  let writer = DispatchQueue(label: "keyway.writer", qos: .userInitiated)
  /// The queue that frees objects whose deallocation would delay the writer.
  private let freeing = DispatchQueue(label: "keyway.freeing", qos: .utility)
  let writing: Locked<Writing>
  private let publication: Locked<Publication>
  private let latest: LatestSnapshot
  let currentCondition: CurrentCondition
  /// Notifies the operator.
  let notify: @Sendable (StoreNotice) -> Void
  let keeper: JournalKeeper
  /// The keeper of the cache of a shared journal; nil if there is no cache.
  let cacheKeeper = Locked<JournalKeeper?>(nil)
  let leases: LeaseKeeper
  private let publisher: any StorePublisher
  /// The shared results for resuming clients. Their locks are taken with no other lock but the publication's.
  private let missedCommits: Locked<BoundedCache<Revision, MissedCommits>>
  private let resumedQueries: Locked<BoundedCache<ResumedQueryKey, PreparedQuery>>

  /// Creates a store without objects over a journal, which `recover` reads. `streams` identifies this node's streams;
  /// nil means that all are. `publisher` receives each batch of commits. `now` returns milliseconds since 1970, and
  /// `elapsed` milliseconds of a monotonic clock, by which leases run. `notify` receives the notices for the operator,
  /// from any thread, once when a condition begins and once when it ends; it must not call the store.
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
    currentCondition = CurrentCondition(journal.bounds.last == 0 ? .serving : .recovering(RecoveryProgress()))
    keeper = JournalKeeper(journal: journal, limits: limits) { failure in
      notify(failure.map { .snapshotFailed($0) } ?? .snapshotWritten)
    }
    shared?.cache?.whenChanged { [notify] in notify($0.map { .cacheFailed($0) } ?? .cacheWritten) }
    leases = LeaseKeeper(streams: streams, elapsed: elapsed)
    missedCommits = Locked(BoundedCache(weightLimit: limits.resumedRevisions))
    resumedQueries = Locked(BoundedCache(weightLimit: limits.resumedRows))
  }

  /// Creates an empty store in memory.
  package convenience init(schema: Schema, epoch: String, limits: StoreLimits, publisher: any StorePublisher) {
    self.init(
      schema: schema, journal: MemoryJournal(identity: JournalIdentity(epoch: epoch, schema: "")), limits: limits,
      publisher: publisher, now: { Int64(time(nil)) * 1000 })
  }

  /// Makes snapshots include the attachments that `kept` returns for a revision: those of commits up to it that are
  /// still in use, oldest first. Otherwise they are lost with the records. `kept` is called on a thread that may wait,
  /// and must not call the store.
  package func keepAttachments(_ kept: @escaping @Sendable (Revision) -> [StoredAttachment]) {
    keeping.withLock { $0 = KeptAction(kept) }
  }

  /// Returns the attachments of commits up to a revision that are still in use, oldest first. Call it on a thread that
  /// may wait.
  package func attachments(upTo revision: Revision) -> [StoredAttachment] { keeping.withLock { $0 }?(revision) ?? [] }

  /// The published state. Never waits for a write or for the notification of observers.
  package var snapshot: Snapshot { latest.snapshot }

  /// The revision of the published state.
  package var revision: Revision { latest.revision }

  /// The current ability of the store to be read and written.
  package var condition: Condition { currentCondition.withLock { $0 } }

  /// True while the store reads its journal.
  package var isRecovering: Bool { currentCondition.isRecovering }

  /// The number of waiting writes.
  package var queuedWrites: Int { queue.withLock { $0.count } }

  /// Runs `body` while nothing can be published, so that everything it reads and registers belongs to one revision.
  /// Keep it short, since the writer waits. Must not be nested.
  package func withPublication<Result, Failure: Error>(
    _ body: (inout Publication) throws(Failure) -> sending Result
  ) throws(Failure) -> sending Result {
    try publication.withLock { publication throws(Failure) in
      defer { free(publication.queries.takeForgotten()) }
      return try body(&publication)
    }
  }

  /// The client number of the store's own writes.
  package static var ownClient: Int { 0 }

  /// Submits a write to the writer. Returns false if too many writes already wait, of all clients or of this one; then
  /// none of its methods is called.
  package func submit(_ write: any StoreWrite) -> Bool {
    let queued = QueuedWrite(write: write)
    enum Entry { case refused, queued, first }
    let entry = queue.withLock { queue -> Entry in
      guard queue.enqueue(queued, bytes: write.byteCount, of: write.client) else { return .refused }
      if queue.isScheduled { return .queued }
      queue.isScheduled = true
      return .first
    }
    if entry == .first { writer.async { self.writeAll() } }
    return entry != .refused
  }

  /// Submits a transaction to the writer. Returns false if too many writes already wait; then neither closure is
  /// called. `attachment` returns the attachment of the commit, on the writer. `finish` is called once, when the commit
  /// is durable and published, or has failed: with the outcome, the revision of the resulting state, and the failure of
  /// the journal, if any.
  package func submit(
    _ transaction: Transaction, of client: Int = ownClient, bytes: Int = 0, limits: TransactionLimits? = nil,
    attachment: (@Sendable (Commit) -> [UInt8])? = nil,
    finish: @escaping @Sendable (Result<Commit, ModelError>, Revision, StoreUnavailable?) -> Void
  ) -> Bool {
    submit(
      PlainWrite(transaction, of: client, bytes: bytes, limits: limits, attachment: attachment, finish: finish))
  }

  /// Publishes durable commits to readers and observers. `times` holds the time of each commit. Returns the number of
  /// steps that each commit took to notify observers and live queries.
  @discardableResult
  private func publish(_ commits: [Commit], at times: [Int64], _ state: ModelState, _ revision: Revision) -> [Int] {
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
    // Hundreds of transactions with a thousand objects each may leave the history at once.
    free(dropped.isEmpty ? nil : dropped)
    return steps
  }

  /// Frees a large value on a queue where no one waits for it.
  private func free(_ garbage: (any Sendable)?) {
    if let garbage { freeing.async { withExtendedLifetime(garbage) {} } }
  }

  /// Publishes the recovered state. There is no observer yet.
  func adopt(_ model: Model, _ history: History) {
    writing.withLock { $0.model = model }
    if let time = history.lastTime { clock.advance(to: time) }
    // Slightly less than the time within which clients may resume, since overdue objects are deleted within a second;
    // with several nodes, also less the time for which this node leaves their deletion to another one.
    let early = shared == nil ? 0 : Self.lateMilliseconds
    leases.restore(model.state, wall: clock.now(), grace: streamGrace - min(streamGrace, early))
    publication.withLock { publication in
      let snapshot = Snapshot(state: model.state, revision: model.revision, after: history)
      publication = Publication(snapshot: snapshot, history: history, limits: limits)
      latest.show(snapshot)
      // Before the first subscription: heartbeats name this state, although nothing has been committed yet.
      publication.queries.settle(upTo: publisher.publish([], upTo: snapshot.revision) { _ in })
    }
    currentCondition.withLock { $0 = .serving }
  }

  /// Drops the commits of the history that are too old.
  func trimHistory() {
    // With several nodes, only the times of the records count, so that all agree on the revisions that can be resumed
    // from.
    guard shared == nil else { return }
    publication.withLock { publication in
      guard publication.history.trim(at: clock.now()) else { return }
      latest.show(publication.advance(to: publication.snapshot.state, publication.snapshot.revision))
    }
  }
}

// MARK: - Recovery

extension Store {
  /// Reads the journal, once, before the first write; then the store serves. Returns remarks for the operator. Throws
  /// the error that prevents this; the store is then unusable.
  ///
  /// `schemaText` is the text of the store's schema. If the journal was written under a different schema, its objects
  /// are migrated to this one, in a separate revision; `StoreError.schema` lists obstacles, in which case nothing has
  /// changed. Without a text, the journal's schema is assumed to be this one. `restore` receives the attachments of the
  /// replayed commits, which are those that can be resumed from and more, oldest first, some at a time, before the
  /// first write. If the journal is shared, it also receives the attachments of other nodes' later commits, before
  /// these are published. It must not call the store.
  package func recover(
    schemaText: String? = nil, report: @escaping (RecoveryProgress) -> Void = { _ in },
    restore: @escaping @Sendable ([StoredAttachment]) -> Void = { _ in }
  ) throws(StoreError) -> [String] {
    // Writes are accepted as soon as the store serves, and may be overtaken before this node follows.
    if shared != nil { restoring.withLock { $0 = KeptAction(restore) } }
    return try StoreOpening(self, report: report, restore: restore).run(schemaText: schemaText)
  }

  /// The revision after which the attachments of all commits are reported to `restore`.
  package var recoveryBase: Revision { keeper.recoveryBase }

  /// The revision of the newest snapshot; 0 if there is none.
  package var snapshotRevision: Revision { keeper.snapshotRevision }

  /// Restricts what the journal removes to the revisions that `need` allows.
  package func keepRecords(_ need: @escaping JournalNeed) { keeper.restrictRemoval(to: need) }

  /// The reason why the last snapshot could not be written; nil if it was written.
  package var snapshotFailure: String? { keeper.failure }

  /// Closes the journal, once the last write has finished.
  package func close() {
    writer.sync { journal.close() }
  }
}

// MARK: - Writing

/// The single writer: it takes the waiting writes in batches, applies each write, records a batch with one sync, and
/// publishes it.
extension Store {
  /// Takes waiting writes in batches, until none are left.
  private func writeAll() {
    while true {
      writing.withLock { $0.batchDelay }.wait { isSo in queue.withLock { isSo($0) } }
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

  /// Commits as many writes of `rest` as fit in one batch, and removes them from it.
  private func write(_ rest: inout ArraySlice<QueuedWrite>, _ times: inout WriterTimes) {
    var waiting = rest
    var (overtaking, attempt) = (Overtaking(), self.attempt(&rest, limit: .max, &times))
    while attempt.isOvertaken {
      overtaken.wrappingAdd(1, ordering: .relaxed)
      let goesOn = overtaking.goesOn()
      if !isCaretaker { overtaking.handBack(&waiting) }
      rest = waiting
      guard goesOn else {
        let first = rest.popFirst().map { [$0] } ?? []
        attempt = WriteAttempt(refusing: first, of: self, because: "other nodes kept appending first")
        break
      }
      attempt = self.attempt(&rest, limit: max(1, waiting.count >> min(overtaking.count, 20)), &times)
    }
    attempt.finish()
    guard attempt.failure != nil, let shared, shared.silence >= WriteTime.silence else { return }
    // The waiting writes have waited as long as the attempt took, and must not wait that long again.
    let late = rest + queue.withLock { $0.takeAll() }
    rest = []
    WriteAttempt(refusing: late, of: self, because: "the journal is out of reach; nothing was changed").finish()
  }

  /// Applies writes, appends their records to the journal, and publishes the commits.
  private func attempt(
    _ rest: inout ArraySlice<QueuedWrite>, limit: Int, _ times: inout WriterTimes
  ) -> WriteAttempt {
    var attempt = WriteAttempt(of: self)
    writing.withLock { writing in
      var admission = leases.admission(limits)
      let base = writing.model.revision
      let (clients, processor) = (rest.map { $0.write.client }, ProcessorStopwatch())
      let durations = attempt.take(from: &rest, limit: limit, &writing, &admission)
      times.add(processor.nanoseconds, to: clients, by: durations)
      writing.batchDelay.lastBatchCount = attempt.commits.count
      do throws(JournalError) {
        guard !attempt.commits.isEmpty else {
          // A refusal must not be based on a state that another node has changed since.
          if attempt.hasRefused { try shared?.confirm(base) }
          return
        }
        let watch = Stopwatch()
        try append(attempt.records, after: base, &writing)
        let nanoseconds = watch.nanoseconds
        syncDurations.record(nanoseconds: nanoseconds)
        writing.batchDelay.lastSync = .nanoseconds(nanoseconds)
      } catch {
        // No reader has seen any of it: the previous state is still the published one.
        undo(&writing)
        if isOvertaken(error, &writing) { return attempt.isOvertaken = true }
        writing.refusedBytes = attempt.bytes
        becomeUnavailable(error)
        attempt.failure = StoreUnavailable(reason: journal.publicReason(error))
        return
      }
      becomeAvailable()
      writing.growth.commitBatch()
      leases.note(attempt.commits, of: admission.clients)
      let publishing = ProcessorStopwatch()
      let steps = publish(
        attempt.commits, at: attempt.records.map(\.milliseconds), writing.model.state, writing.model.revision)
      times.add(publishing.nanoseconds, to: attempt.applied.map { $0.write.client }, by: steps)
      for queued in attempt.applied { commitDurations.record(nanoseconds: queued.watch.nanoseconds) }
      noteWritten(records: attempt.records.count, bytes: attempt.bytes)
    }
    return attempt
  }

  /// The minimum interval between two attempts to read back a journal that may have lost something.
  private static let recoveryInterval = Duration.seconds(1)

  /// Appends records to the journal. If the journal cannot be trusted, it is read back first.
  private func append(
    _ records: [JournalRecord], after base: Revision, _ writing: inout Writing
  ) throws(JournalError) {
    do throws(JournalError) {
      try journal.append(records, after: base)
    } catch {
      // A shared journal has already retried for as long as a write may take.
      guard case .untrusted = error, shared == nil, .now >= writing.nextRecovery else { throw error }
      writing.nextRecovery = .now + Self.recoveryInterval
      try journal.recover()
      do throws(JournalError) {
        try journal.append(records, after: base)
      } catch {
        // The submitters of records that may have reached the disk are told that they failed, so these must not be
        // found at the next start.
        if case .untrusted = error { try? journal.recover() }
        throw error
      }
      // The next failure is a new one, for which the journal is read back at once.
      writing.nextRecovery = .now
    }
  }
}

// MARK: - Records of other nodes

extension Store {
  /// The place of the records of another node's commits after they were taken over.
  package enum RecordPlace: Hashable, Sendable {
    /// They are appended to this store's journal, unchanged.
    case appended
    /// They are already in this store's journal, because the other node writes to the same one.
    case shared
  }

  /// Takes over commits of another node, which has them on its disk: replays them as a recovery does, with the time of
  /// the original commit, writes the same bytes, and publishes them like its own. State, history, events, digests and
  /// attachments are therefore the other node's. `records` follow on one another and on the store's revision; those
  /// that the store already has are skipped. `restore` receives their attachments before anything is published; it must
  /// not call the store.
  ///
  /// Returns when they are published. Throws `replay` if one cannot be applied or does not follow, and `journal` if
  /// they cannot be written; in both cases none was taken over. Any thread but the writer's; not concurrently with this
  /// node's own writes, unless the journal is shared.
  package func take(
    _ records: [JournalRecord], _ place: RecordPlace = .appended,
    restore: ([StoredAttachment]) -> Void = { _ in }
  ) throws(StoreError) {
    var transactions: [Transaction] = []
    transactions.reserveCapacity(records.count)
    for record in records { transactions.append(try record.decoded()) }
    let entries = Array(zip(records, transactions))
    let outcome = writer.sync { () -> Result<Void, StoreError> in
      Result { () throws(StoreError) in try self.carryOut(entries, place, restore) }
    }
    // After the commits have been delivered to those that wait for them.
    writer.async { self.journal.maintain() }
    try outcome.get()
  }

  private func carryOut(
    _ entries: [(JournalRecord, Transaction)], _ place: RecordPlace, _ restore: ([StoredAttachment]) -> Void
  ) throws(StoreError) {
    if case .recovering = condition { throw .journal(.unusable("the store has not read its journal yet")) }
    try writing.withLock { writing throws(StoreError) in try carryOut(entries, place, &writing, restore) }
  }

  /// Replays the records, appends them to the journal if they are not there yet, and publishes them. Called on the
  /// writer.
  func carryOut(
    _ entries: [(JournalRecord, Transaction)], _ place: RecordPlace, _ writing: inout Writing,
    _ restore: ([StoredAttachment]) -> Void
  ) throws(StoreError) {
    let base = writing.model.revision
    let new = entries.drop { $0.0.revision <= base }
    guard !new.isEmpty else { return }
    var commits: [Commit] = []
    do throws(StoreError) {
      for (record, transaction) in new { commits.append(try record.carryOut(transaction, &writing.model)) }
    } catch {
      undo(&writing)
      throw error
    }
    let records = new.map(\.0)
    let bytes = records.reduce(0) { $0 + $1.body.count }
    if place == .appended {
      do throws(JournalError) {
        try append(records, after: base, &writing)
      } catch {
        undo(&writing)
        writing.refusedBytes = bytes
        becomeUnavailable(error)
        throw .journal(error)
      }
    }
    becomeAvailable()
    if let last = records.last { clock.advance(to: last.milliseconds) }
    leases.note(commits)
    let attachments = records.compactMap { record in
      record.attachment.map {
        StoredAttachment(revision: record.revision, milliseconds: record.milliseconds, bytes: $0)
      }
    }
    if !attachments.isEmpty { restore(attachments) }
    publish(commits, at: records.map(\.milliseconds), writing.model.state, writing.model.revision)
    noteWritten(records: records.count, bytes: bytes)
  }

  /// Notifies the keepers of the journal and of the cache that records were published.
  private func noteWritten(records: Int, bytes: Int) {
    keeper.note(records: records, bytes: bytes, of: self)
    if shared != nil { cacheKeeper.withLock { $0 }?.note(records: records, bytes: bytes, of: self) }
  }

  /// Resets the writer's model to the published state, which is the only one that readers have seen.
  private func undo(_ writing: inout Writing) {
    let snapshot = self.snapshot
    writing.model = Model(state: snapshot.state, revision: snapshot.revision)
    writing.growth.undo()
  }
}

// MARK: - Peers

/// The part of a store whose journal other nodes append to as well.
extension Store {
  /// Takes over the records that other nodes append, on a thread of its own, until the journal is closed. Does nothing
  /// if the journal is not shared. Call it after `recover`.
  package func follow() {
    if let shared { PeerRecords.follow(shared, self) }
  }

  /// Takes over records that another node hands to this one, so that they are published on return. If they do not
  /// follow on this node's last record, they arrive through the journal as usual.
  package func take(_ handed: HandedRecords) {
    guard let shared, shared.take(handed) else { return }
    // An error here occurs again when the journal is followed, and is reported there.
    try? PeerRecords(store: self).takeOver(from: shared)
  }

  /// Returns true if an error means that others have appended, and their records were taken over.
  private func isOvertaken(_ error: JournalError, _ writing: inout Writing) -> Bool {
    guard shared != nil, case .unexpectedRevision = error else { return false }
    return (try? PeerRecords(store: self).catchUp(&writing)) != nil
  }

  /// The number of times a batch of this node was retried because another node appended first.
  package var overtakenBatches: Int { overtaken.load(ordering: .relaxed) }

  /// True if this node does the work that one node does for all.
  var isCaretaker: Bool { shared?.hasPen ?? true }
}

// MARK: - Availability

/// The availability of the journal for writes: detected by writes, and by a check every second.
extension Store {
  /// Notes that the journal refuses writes, and notifies the operator the first time.
  func becomeUnavailable(_ error: JournalError) {
    let reason = journal.publicReason(error)
    let isNew = currentCondition.withLock { condition in
      defer { condition = .unavailable(reason) }
      if case .unavailable = condition { return false }
      return true
    }
    if isNew { notify(.refusesWrites(error.description)) }
  }

  /// Notes that the journal accepts writes, and notifies the operator if it did not before.
  private func becomeAvailable() {
    let wasUnavailable = currentCondition.withLock { condition in
      if case .serving = condition { return false }
      defer { condition = .serving }
      if case .unavailable = condition { return true }
      return false
    }
    if wasUnavailable { notify(.takesWrites) }
  }

  /// Checks the journal, so that it takes no write to detect that it is gone or that it works again: a load balancer
  /// that sends a server nothing until it is ready would otherwise wait forever. Called every second.
  func watchJournal() {
    switch condition {
    case .recovering: return
    case .serving:
      guard (try? journal.checkPresence()) == nil else { return }
    case .unavailable: break
    }
    writer.async { [weak self] in self?.tryJournal() }
  }

  /// Tests whether the journal would now accept the batch that it refused. If so, the next failure is a new one, for
  /// which the journal is read back at once. Runs on the writer.
  private func tryJournal() {
    let bytes = writing.withLock { $0.refusedBytes }
    do throws(JournalError) {
      try journal.probe(bytes: bytes)
      writing.withLock { $0.nextRecovery = .now }
      becomeAvailable()
    } catch {
      if case .unusable = error { return }
      becomeUnavailable(error)
    }
  }
}

// MARK: - Leases

extension Store {
  /// The number of objects with a lease.
  package var leaseCount: Int { leases.count }

  /// Deletes the objects whose leases have expired, and those bound to a stream for which `isStreamThere` returns
  /// false. Called repeatedly; the deletions continue after it has returned. Objects that cannot be deleted are retried
  /// when the store has changed.
  package func endLeases(unless isStreamThere: (UInt64) -> Bool) {
    guard condition == .serving else { return }
    leases.endStreams(unless: isStreamThere)
    leases.deleteDue(in: self, lateBy: isCaretaker ? 0 : Self.lateMilliseconds)
  }

  /// The delay after which a node deletes overdue objects that another one should have deleted, in milliseconds.
  private static var lateMilliseconds: UInt64 { 3_000 }

  /// The time for which leases last after the node that had their stream is gone, in milliseconds: slightly less than
  /// the time within which its clients may resume, since due objects are deleted within a second.
  var streamGrace: UInt64 { UInt64(max(0, limits.streamLeaseSeconds - 1)) * 1_000 }

  /// Stops the expiry of leases from now on.
  package func holdLeases() { leases.hold() }
}

// MARK: - Resuming clients

extension Store {
  /// The maximum age of shared results for resuming clients, in revisions: each keeps the objects of its time alive.
  private static let resumedAge: Revision = 1000

  /// Prepares queries for a client that resumes after a revision, or brings prepared ones up to date with the published
  /// history: their results at that revision, and the changes since. Uses queries that were prepared for another client
  /// and cached. Leaves out queries for which this is no longer known. Throws `malformed-filter` if they cost more
  /// than `request.steps` together, or if `isAbandoned` returns true because they are no longer wanted.
  package func prepare(
    _ queries: some Collection<Query>, after revision: Revision, _ publishedHistory: PublishedHistory,
    _ prepared: inout [Query: PreparedQuery], _ isAbandoned: () -> Bool = { false }
  ) throws(ModelError) {
    var cost = limits.queryOpeningCost
    for query in Set(queries) {
      let key = ResumedQueryKey(query: query, after: revision)
      let known = prepared.removeValue(forKey: query) ?? resumedQueries.withLock { $0.take(key) }
      if var entry = known,
        entry.revision >= publishedHistory.snapshot.revision || publishedHistory.commits(after: entry.revision) != nil
      {
        bringUp(&entry, to: publishedHistory)
        prepared[query] = entry
      } else if let missed = missed(after: revision, publishedHistory) {
        var entry = try PreparedQuery(query, missed, limits: limits, cost: &cost, isAbandoned)
        bringUp(&entry, to: publishedHistory)
        prepared[query] = entry
      }
    }
  }

  private func bringUp(_ entry: inout PreparedQuery, to publishedHistory: PublishedHistory) {
    guard entry.revision < publishedHistory.snapshot.revision,
      let commits = publishedHistory.commits(after: entry.revision)
    else { return }
    entry.bringUp(through: commits, to: publishedHistory.snapshot)
  }

  /// Caches the queries that were prepared for a client that resumed after a revision, for the next such clients. Do
  /// not cache a query that is being observed: the writer would copy its rows.
  package func cacheResumedQueries(_ prepared: [Query: PreparedQuery], after revision: Revision) {
    for (query, entry) in prepared where entry.failure == nil && entry.past != nil {
      let key = ResumedQueryKey(query: query, after: revision)
      let weight = entry.rowCount + entry.contents.reduce(1) { $0 + $1.changes.count }
      resumedQueries.withLock { $0.put(entry, for: key, at: entry.revision, weight: weight) }
    }
  }

  /// Evicts results that are too old by now.
  private func forgetResumed(at present: Revision) {
    guard present > Self.resumedAge else { return }
    missedCommits.withLock { $0.forget(before: present - Self.resumedAge) }
    resumedQueries.withLock { $0.forget(before: present - Self.resumedAge) }
  }
}

extension Store {
  /// The maximum lag of shared results, in revisions: their users process the remaining commits themselves.
  private static let sharedLag: Revision = 64

  /// Returns the commits after a revision up to approximately the published one, slightly before or after it. Shared by
  /// clients that ask for the same revision at about the same time. Returns nil if the history does not reach back so
  /// far.
  package func missed(after revision: Revision, _ publishedHistory: PublishedHistory) -> MissedCommits? {
    if let known = missedCommits.withLock({ $0.item(for: revision) }),
      known.snapshot.revision + Self.sharedLag >= publishedHistory.snapshot.revision
    {
      return known
    }
    guard let missed = MissedCommits(after: revision, publishedHistory) else { return nil }
    missedCommits.withLock { cache in
      _ = cache.take(revision)
      cache.put(missed, for: revision, at: missed.snapshot.revision, weight: missed.commits.count + 1)
    }
    return missed
  }
}

/// The key of the work that clients resuming the same live query have in common.
private struct ResumedQueryKey: Hashable, Sendable {
  let query: Query
  let after: Revision
}
